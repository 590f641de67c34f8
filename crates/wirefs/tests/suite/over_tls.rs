//! Keys: who may enter, and whom the client believes.

use crate::world::{Server, World};

const LISTEN: [&str; 4] = ["--listen", "tls://127.0.0.1:0", "--authorized", "authorized"];

fn serve(world: &World) -> Server {
    world.serve(&LISTEN)
}

fn authorize(world: &World) {
    world.write("authorized", &world.wirefs(&["identity"]).succeeds());
}

#[test]
fn the_first_connection_prints_the_key_that_it_pins() {
    let world = World::new();
    world.write("export/sub/a", "hello\n");
    authorize(&world);
    let server = serve(&world);
    let fingerprint = server.line.split_whitespace().find(|word| word.starts_with("SHA256:")).unwrap();
    let fingerprint = fingerprint.trim_end_matches(';').to_owned();
    // A client of another home than the server's: only the key joins them.
    let source = format!("{}/sub/", server.address());
    let first = world.wirefs(&["mount", &source, "mnt"]);
    assert!(first.stderr.contains(&fingerprint), "{first:?}");
    first.succeeds();
    assert_eq!(world.read("mnt/a"), "hello\n");
    assert_eq!(world.status()["peer"]["key"], fingerprint);
    assert_eq!(world.status()["carrier"], "tcp+tls");
    world.wirefs(&["umount", "mnt"]).succeeds();

    let second = world.wirefs(&["mount", &source, "mnt"]);
    assert_eq!(second.stderr, "");
    second.succeeds();
    world.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn an_unknown_key_is_refused_with_the_line_that_would_let_it_in() {
    let world = World::new();
    world.write("authorized", "# nobody yet\n");
    let server = serve(&world);
    let line = world.wirefs(&["identity"]).succeeds();
    world.wirefs(&["mount", &server.address(), "mnt"]).fails_with(&["authorized-keys file", line.trim_end()]);
    assert!(!world.is_mounted());
    // The file is read anew at each connection.
    authorize(&world);
    world.wirefs(&["mount", &server.address(), "mnt"]).succeeds();
    world.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn a_changed_server_key_is_refused_with_both_fingerprints() {
    let world = World::new();
    authorize(&world);
    let server = serve(&world);
    let known = format!("{} wirefs-ed25519 {}=\n", &server.address()["tls://".len()..], "A".repeat(43));
    world.write("home/.config/wirefs/known_hosts", &known);
    world.wirefs(&["mount", &server.address(), "mnt"]).fails_with(&[
        "HAS CHANGED",
        "known key",
        "shown key",
        "known_hosts:1",
        "delete that line",
    ]);
    assert!(!world.is_mounted());
}

#[test]
fn keys_can_be_kept_elsewhere() {
    let world = World::new();
    authorize(&world);
    let server = serve(&world);
    let options = "identity=home/.config/wirefs,known_hosts=elsewhere";
    world.wirefs(&["mount", &server.address(), "mnt", "-o", options]).succeeds();
    assert!(world.read("elsewhere").starts_with("127.0.0.1:"));
    world.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn a_directory_that_the_export_lacks_is_named() {
    let world = World::new();
    authorize(&world);
    let server = serve(&world);
    let source = format!("{}/absent", server.address());
    world.wirefs(&["mount", &source, "mnt"]).fails_with(&["`/absent`", "check the path"]);
}
