use super::*;

fn scratch(name: &str) -> KnownHosts {
    let path = std::env::temp_dir().join(format!("wirefs-carrier-known-{}-{name}", std::process::id()));
    let _old = std::fs::remove_file(&path);
    KnownHosts::new(path)
}

#[test]
fn first_pin_is_kept() {
    let known = scratch("first");
    let (first, second) = (PublicKey::from_raw([1; 32]), PublicKey::from_raw([2; 32]));
    assert_eq!(known.find("h:1").unwrap(), None);
    assert_eq!(known.pin("h:1", first).unwrap(), None);
    assert_eq!(known.pin("h:1", second).unwrap(), Some(KnownHost { key: first, line: 1, is_trusted: false }));
    assert_eq!(known.pin("[::1]:2", second).unwrap(), None);
    assert_eq!(known.find("[::1]:2").unwrap(), Some(KnownHost { key: second, line: 2, is_trusted: false }));
    assert_eq!(known.find("h:11").unwrap(), None, "no other host's key is taken");
    std::fs::remove_file(known.path()).unwrap();
}

#[test]
fn invalid_line_fails_for_its_host_only() {
    let known = scratch("broken");
    let key = PublicKey::from_raw([1; 32]);
    std::fs::write(known.path(), format!("# h:1 {key}\nother:1 nonsense\nh:1 wirefs-ed25519 AAAA\n"))
        .unwrap();
    let error = known.find("h:1").unwrap_err().to_string();
    assert!(error.contains(":3: the key of h:1 is broken; delete that line"), "{error}");
    assert_eq!(known.find("h:2").unwrap(), None);
    std::fs::remove_file(known.path()).unwrap();
}
