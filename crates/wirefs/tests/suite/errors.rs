//! What a person is told when something is wrong.

use crate::world::{Ran, WIREFS, World};
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_busy_port_is_named() {
    let world = World::new();
    let server = world.serve(&["--listen", "tcp+plain://127.0.0.1:0"]);
    let address = server.address();
    world.wirefs(&["serve", "export", "--listen", &address]).fails_with(&[
        &address,
        "in use",
        "another address",
    ]);
    let _other = world.serve(&["--listen", &world.url()]);
    world.wirefs(&["serve", "export", "--listen", &world.url()]).fails_with(&["socket", "in use"]);
}

#[test]
fn a_directory_that_cannot_be_exported_is_named() {
    let world = World::new();
    world.write("file", "");
    world
        .wirefs(&["serve", "absent", "--listen", &world.url()])
        .fails_with(&["absent does not exist", "mkdir"]);
    world.wirefs(&["serve", "file", "--listen", &world.url()]).fails_with(&["file is not a directory"]);
    assert!(!world.path("socket").exists());
}

#[test]
fn an_authorized_file_that_cannot_be_used_is_named() {
    let world = World::new();
    let serve = |file: &str| {
        world.wirefs(&["serve", "export", "--listen", "tls://127.0.0.1:0", "--authorized", file])
    };
    serve("absent").fails_with(&["no file absent", "wirefs identity"]);
    world.write("open", "");
    std::fs::set_permissions(world.path("open"), std::fs::Permissions::from_mode(0o666)).unwrap();
    serve("open").fails_with(&["open can be changed by other users", "chmod"]);
}

#[test]
fn a_missing_home_is_told_with_the_variable_to_set() {
    let world = World::new();
    for arguments in [&["identity"][..], &["mount", "tls://127.0.0.1:1/", "mnt"], &["serve", "export"]] {
        let ran = Ran::of(world.command(WIREFS).env_remove("HOME").args(arguments));
        ran.fails_with(&["$HOME", "$XDG_CONFIG_HOME", "next step"]);
    }
}

#[test]
fn a_mount_without_a_home_works_where_no_key_is_needed() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    Ran::of(world.command(WIREFS).env_remove("HOME").args(["mount", &world.url(), "mnt"])).succeeds();
    world.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn a_mountpoint_that_cannot_be_used_is_told_before_connecting() {
    let world = World::new();
    world.write("file", "");
    world
        .wirefs(&["mount", &world.url(), "absent"])
        .fails_with(&["absent does not exist", "mkdir -p absent"]);
    world.wirefs(&["mount", &world.url(), "file"]).fails_with(&["file is not a directory"]);
    let _server = world.mounted();
    world.wirefs(&["mount", &world.url(), "mnt"]).fails_with(&["already", "wirefs umount mnt"]);
}

#[test]
fn a_server_that_is_not_there_is_told_and_nothing_is_mounted() {
    let world = World::new();
    world.wirefs(&["mount", &world.url(), "mnt"]).fails_with(&["cannot connect", "wirefs serve"]);
    world.wirefs(&["mount", "tcp+plain://127.0.0.1:1/", "mnt"]).fails_with(&["127.0.0.1:1", "wirefs serve"]);
    assert!(!world.is_mounted());
}

#[test]
fn a_source_that_is_none_is_told_with_the_forms() {
    let world = World::new();
    for source in ["/some/where", "http://host/x", "tcp://host:1/", "unix://relative", "tls://host:99999/"] {
        let said = world.wirefs(&["mount", source, "mnt"]).fails_with(&[source]);
        assert!(said.contains("; "), "no next step: {said}");
    }
}

#[test]
fn what_is_not_mounted_is_told() {
    let world = World::new();
    world.wirefs(&["umount", "mnt"]).fails_with(&["no FUSE file system is mounted at"]);
    world.wirefs(&["status", "mnt"]).fails_with(&["nothing is mounted by wirefs at mnt"]);
    world.wirefs(&["sync", "absent/mnt"]).fails_with(&["absent/mnt"]);
    let all = world.wirefs(&["status", "--json"]).succeeds();
    assert!(serde_json::from_str::<Vec<serde_json::Value>>(&all).is_ok(), "{all}");
}

#[test]
fn a_wrong_command_line_ends_with_2_and_the_usage() {
    let world = World::new();
    for arguments in
        [&["mout", "a", "b"][..], &["mount", "a:b"], &["mount", "a:b", "mnt", "--mode", "fast"], &[]]
    {
        let ran = world.wirefs(arguments);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("Usage") || ran.stderr.contains("--help"), "{ran:?}");
    }
}
