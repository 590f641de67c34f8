//! Keys: authorization of clients, and verification of servers.

use crate::home::{Server, TestHome};

const LISTEN: [&str; 4] = ["--listen", "tls://127.0.0.1:0", "--authorized", "authorized"];

fn serve(home: &TestHome) -> Server {
    home.serve(&LISTEN)
}

fn authorize(home: &TestHome) {
    home.write("authorized", &home.wirefs(&["identity"]).succeeds());
}

#[test]
fn first_connection_prints_the_pinned_key() {
    let home = TestHome::new();
    home.write("export/sub/a", "hello\n");
    authorize(&home);
    let server = serve(&home);
    let fingerprint = server.line.split_whitespace().find(|word| word.starts_with("SHA256:")).unwrap();
    let fingerprint = fingerprint.trim_end_matches(';').to_owned();
    // A client with another home than the server's: only the key connects them.
    let source = format!("{}/sub/", server.address());
    let first = home.wirefs(&["mount", &source, "mnt"]);
    assert!(first.stderr.contains(&fingerprint), "{first:?}");
    first.succeeds();
    assert_eq!(home.read("mnt/a"), "hello\n");
    assert_eq!(home.status()["peer"]["key"], fingerprint);
    assert_eq!(home.status()["carrier"], "tcp+tls");
    home.wirefs(&["umount", "mnt"]).succeeds();

    let second = home.wirefs(&["mount", &source, "mnt"]);
    assert_eq!(second.stderr, "");
    second.succeeds();
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn unauthorized_key_is_refused_with_the_line_to_add() {
    let home = TestHome::new();
    home.write("authorized", "# nobody yet\n");
    let server = serve(&home);
    let line = home.wirefs(&["identity"]).succeeds();
    home.wirefs(&["mount", &server.address(), "mnt"]).fails_with(&["wirefs allow", line.trim_end()]);
    assert!(!home.is_mounted());
    // The file is read again for each connection.
    authorize(&home);
    home.wirefs(&["mount", &server.address(), "mnt"]).succeeds();
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn changed_server_key_is_refused_with_both_fingerprints() {
    let home = TestHome::new();
    authorize(&home);
    let server = serve(&home);
    let known = format!("{} wirefs-ed25519 {}=\n", &server.address()["tls://".len()..], "A".repeat(43));
    home.write("home/.config/wirefs/known_hosts", &known);
    home.wirefs(&["mount", &server.address(), "mnt"]).fails_with(&[
        "HAS CHANGED",
        "known key",
        "shown key",
        "known_hosts:1",
        "delete that line",
    ]);
    assert!(!home.is_mounted());
}

#[test]
fn keys_can_be_kept_elsewhere() {
    let home = TestHome::new();
    authorize(&home);
    let server = serve(&home);
    let options = "identity=home/.config/wirefs,known_hosts=elsewhere";
    home.wirefs(&["mount", &server.address(), "mnt", "-o", options]).succeeds();
    assert!(home.read("elsewhere").starts_with("127.0.0.1:"));
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn missing_directory_of_the_export_is_reported() {
    let home = TestHome::new();
    authorize(&home);
    let server = serve(&home);
    let source = format!("{}/absent", server.address());
    home.wirefs(&["mount", &source, "mnt"]).fails_with(&["`/absent`", "check the path"]);
}
