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

fn options(text: &str) -> KeyOptions {
    KeyOptions::parse(text).unwrap()
}

#[test]
fn a_line_round_trips_with_its_options() {
    let key = PublicKey::from_raw([1; 32]);
    for text in ["", "read-only", "read-only,export=photos,export=a.b,from=10.0.0.0/8,from=fd00::1"] {
        let line = KeyLine { key, options: options(text), comment: "ann at home".to_owned() };
        assert_eq!(line.options.to_string(), text);
        assert_eq!(KeyLine::parse(&line.to_string()), Ok(line));
    }
}

#[test]
fn a_line_with_an_unknown_option_lets_nobody_in() {
    let key = PublicKey::from_raw([1; 32]);
    for option in
        ["readonly", "read-only,", "export=", "export=a/b", "export=.a", "from=lan", "from=10.0.0.0/40"]
    {
        let keys = AuthorizedKeys::parse(Path::new("keys"), &format!("{option} {key} ann\n"));
        assert!(!keys.contains(&key), "{option}");
        let [broken] = keys.broken() else { panic!("{option}: {:?}", keys.broken()) };
        assert!(broken.to_string().contains("options are read-only"), "{broken}");
    }
}

#[test]
fn rights_are_those_of_all_lines_that_apply() {
    let key = PublicKey::from_raw([1; 32]);
    let text =
        format!("read-only,export=a {key}\nexport=b,from=10.0.0.0/8 {key}\nread-only,export=b {key}\n");
    let keys = AuthorizedKeys::parse(Path::new("keys"), &text);
    let rights = |peer, export| keys.rights(&key, peer, export).map(|rights| rights.read_only);
    let (near, far) = ("10.0.0.1:5000", "192.0.2.1:5000");
    assert_eq!([rights(near, "a"), rights(near, "b"), rights(near, "c")], [Some(true), Some(false), None]);
    assert_eq!([rights(far, "a"), rights(far, "b")], [Some(true), Some(true)]);
    assert_eq!(keys.rights(&PublicKey::from_raw([2; 32]), near, "a"), None);
}

#[test]
fn a_key_with_a_network_is_admitted_only_from_there() {
    let key = PublicKey::from_raw([1; 32]);
    let keys = AuthorizedKeys::parse(Path::new("keys"), &format!("from=10.0.0.0/8 {key}\n"));
    assert!(keys.admits(&key, "10.9.9.9:1") && keys.admits(&key, "[::ffff:10.0.0.1]:1"));
    assert!(!keys.admits(&key, "11.0.0.1:1") && !keys.admits(&key, "ether://02:00:00:00:00:01"));
}
