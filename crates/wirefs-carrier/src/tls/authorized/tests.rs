use super::*;

#[test]
fn invalid_lines_are_numbered_and_the_others_count() {
    let (one, two) = (PublicKey::from_raw([1; 32]), PublicKey::from_raw([2; 32]));
    let text = format!("# people\n\n{one} ann@desk\n  {two}\nssh-ed25519 AAAA bob\nwirefs-ed25519 short\n");
    let keys = AuthorizedKeys::parse(Path::new("keys"), &text);
    assert!(keys.contains(&one) && keys.contains(&two) && !keys.contains(&PublicKey::from_raw([3; 32])));
    assert_eq!(keys.broken().iter().map(|broken| broken.line).collect::<Vec<_>>(), [5, 6]);
    assert!(keys.broken()[0].to_string().starts_with("keys:5: this line is no key"));
}

#[test]
fn file_of_comments_authorizes_no_key() {
    let keys = AuthorizedKeys::parse(Path::new("keys"), "# nobody yet\n");
    assert!(keys.is_empty() && keys.broken().is_empty());
}
