//! `wirefs allow`, `keys` and `revoke`, and the rights of keys.

use std::io::ErrorKind;

use crate::home::{Server, TestHome, wait_for};

fn serve(home: &TestHome) -> Server {
    home.write("export/a", "hello\n");
    home.serve(&["--listen", "tls://127.0.0.1:0"])
}

/// Runs `wirefs allow` with these options and the key of this home.
fn allow(home: &TestHome, options: &[&str]) -> String {
    let line = home.wirefs(&["identity"]).succeeds();
    let words: Vec<&str> = line.split_whitespace().collect();
    home.wirefs(&[&["allow"], options, &words].concat()).succeeds()
}

#[test]
fn allowed_key_is_listed_until_it_is_revoked() {
    let home = TestHome::new();
    let file = "home/.config/wirefs/authorized_keys";
    home.write(file, "# a comment stays\n");
    allow(&home, &["--read-only"]);
    allow(&home, &["--export", "photos", "--from", "10.0.0.0/8"]);
    let listed = home.wirefs(&["keys"]).succeeds();
    assert!(listed.contains("export=photos,from=10.0.0.0/8") && !listed.contains("read-only"), "{listed}");
    assert_eq!(listed.lines().count(), 1, "{listed}");
    home.wirefs(&["revoke", "nobody"]).fails_with(&["no key `nobody`", "wirefs keys"]);
    let fingerprint = listed.split_whitespace().next().unwrap();
    home.wirefs(&["revoke", fingerprint]).succeeds();
    assert_eq!(home.wirefs(&["keys"]).succeeds(), "");
    assert_eq!(home.read(file), "# a comment stays\n");
    home.wirefs(&["allow", "wirefs-ed25519", "AAAA"]).fails_with(&["wirefs identity"]);
}

// S-140
#[test]
fn read_only_key_changes_nothing() {
    let home = TestHome::new();
    allow(&home, &["--read-only"]);
    let server = serve(&home);
    home.wirefs(&["mount", &server.address(), "mnt"]).succeeds();
    assert_eq!(home.read("mnt/a"), "hello\n");
    let refused = std::fs::write(home.path("mnt/b"), "new").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem);
    let refused = std::fs::remove_file(home.path("mnt/a")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem);
    assert_eq!(home.read("export/a"), "hello\n");
    home.wirefs(&["umount", "mnt"]).succeeds();
}

// S-139
#[test]
fn key_of_another_network_is_refused() {
    let home = TestHome::new();
    allow(&home, &["--from", "192.0.2.0/24"]);
    let server = serve(&home);
    home.wirefs(&["mount", &server.address(), "mnt"]).fails_with(&["not accept this key from here"]);
    allow(&home, &["--from", "127.0.0.0/8"]);
    home.wirefs(&["mount", &server.address(), "mnt"]).succeeds();
    home.wirefs(&["umount", "mnt"]).succeeds();
}

// S-141
#[test]
fn revoked_key_loses_its_session() {
    let home = TestHome::new();
    let line = home.wirefs(&["identity"]).succeeds();
    allow(&home, &[]);
    let server = serve(&home);
    home.wirefs(&["mount", "--mode", "strict", "--deadline", "500ms", &server.address(), "mnt"]).succeeds();
    assert_eq!(home.read("mnt/a"), "hello\n");
    home.wirefs(&["revoke", line.trim_end()]).succeeds();
    wait_for("the end of the session", || std::fs::read(home.path("mnt/a")).is_err());
    home.wirefs(&["umount", "-f", "mnt"]);
    home.wirefs(&["mount", &server.address(), "mnt"]).fails_with(&["wirefs allow", line.trim_end()]);
}

#[test]
fn key_of_a_named_export_may_not_use_an_unnamed_one() {
    let home = TestHome::new();
    allow(&home, &["--export", "photos"]);
    let server = serve(&home);
    home.wirefs(&["mount", &server.address(), "mnt"])
        .fails_with(&["this key may use no export", "wirefs allow"]);
}
