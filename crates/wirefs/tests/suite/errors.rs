//! Error messages for users.

use crate::home::{Finished, TestHome, WIREFS, need_root};
use std::os::unix::fs::PermissionsExt;

#[test]
fn busy_port_is_reported() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", "tcp+plain://127.0.0.1:0"]);
    let address = server.address();
    home.wirefs(&["serve", "export", "--listen", &address]).fails_with(&[
        &address,
        "in use",
        "another address",
    ]);
    let _second = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["serve", "export", "--listen", &home.url()]).fails_with(&["socket", "in use"]);
}

#[test]
fn directory_that_cannot_be_exported_is_reported() {
    let home = TestHome::new();
    home.write("file", "");
    home.wirefs(&["serve", "absent", "--listen", &home.url()])
        .fails_with(&["absent does not exist", "mkdir"]);
    home.wirefs(&["serve", "file", "--listen", &home.url()]).fails_with(&["file is not a directory"]);
    assert!(!home.path("socket").exists());
}

#[test]
fn unusable_authorized_keys_file_is_reported() {
    let home = TestHome::new();
    let serve =
        |file: &str| home.wirefs(&["serve", "export", "--listen", "tls://127.0.0.1:0", "--authorized", file]);
    serve("absent").fails_with(&["no file absent", "wirefs identity"]);
    home.write("open", "");
    std::fs::set_permissions(home.path("open"), std::fs::Permissions::from_mode(0o666)).unwrap();
    serve("open").fails_with(&["open can be changed by other users", "chmod"]);
}

#[test]
fn missing_home_is_reported_with_the_variable_to_set() {
    let home = TestHome::new();
    for arguments in [&["identity"][..], &["mount", "tls://127.0.0.1:1/", "mnt"], &["serve", "export"]] {
        let ran = Finished::of(home.command(WIREFS).env_remove("HOME").args(arguments));
        ran.fails_with(&["$HOME", "$XDG_CONFIG_HOME", "next step"]);
    }
}

#[test]
fn mount_without_a_home_works_if_no_key_is_needed() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    Finished::of(home.command(WIREFS).env_remove("HOME").args(["mount", &home.url(), "mnt"])).succeeds();
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn unusable_mountpoint_is_reported_before_connecting() {
    let home = TestHome::new();
    home.write("file", "");
    home.wirefs(&["mount", &home.url(), "absent"]).fails_with(&["absent does not exist", "mkdir -p absent"]);
    home.wirefs(&["mount", &home.url(), "file"]).fails_with(&["file is not a directory"]);
    let _server = home.mounted();
    home.wirefs(&["mount", &home.url(), "mnt"]).fails_with(&["already", "wirefs umount mnt"]);
}

#[test]
fn missing_server_is_reported_and_nothing_is_mounted() {
    let home = TestHome::new();
    home.wirefs(&["mount", &home.url(), "mnt"]).fails_with(&["cannot connect", "wirefs serve"]);
    home.wirefs(&["mount", "tcp+plain://127.0.0.1:1/", "mnt"]).fails_with(&["127.0.0.1:1", "wirefs serve"]);
    assert!(!home.is_mounted());
}

#[test]
fn invalid_source_is_reported_with_the_valid_forms() {
    let home = TestHome::new();
    for source in ["/some/where", "http://host/x", "tcp://host:1/", "unix://relative", "tls://host:99999/"] {
        let output = home.wirefs(&["mount", source, "mnt"]).fails_with(&[source]);
        assert!(output.contains("; "), "no next step: {output}");
    }
}

#[test]
fn missing_mount_is_reported() {
    let home = TestHome::new();
    home.wirefs(&["umount", "mnt"]).fails_with(&["no FUSE file system is mounted at"]);
    home.wirefs(&["status", "mnt"]).fails_with(&["nothing is mounted by wirefs at mnt"]);
    home.wirefs(&["sync", "absent/mnt"]).fails_with(&["absent/mnt"]);
    let all = home.wirefs(&["status", "--json"]).succeeds();
    assert!(serde_json::from_str::<Vec<serde_json::Value>>(&all).is_ok(), "{all}");
}

#[test]
fn mount_of_another_user_is_named_as_such() {
    need_root();
    const USER: u32 = 65_534;
    let home = TestHome::new();
    let _server = home.mounted();
    // The other user has no access to the program's directory.
    crate::home::copy_program(&home.path("program"));
    let ask = |arguments: &[&str]| {
        let mut command = home.command(home.path("program").to_str().unwrap());
        command.args(arguments).env_remove("XDG_RUNTIME_DIR");
        std::os::unix::process::CommandExt::uid(&mut command, USER);
        std::os::unix::process::CommandExt::gid(&mut command, USER);
        Finished::of(&mut command)
    };
    let one = ask(&["status", &home.text("mnt")]).fails_with(&["a mount of the user with id 0"]);
    let all = ask(&["status"]).succeeds();
    assert!(all.contains("a mount of the user with id 0"), "{all}");
    assert!(!one.contains("umount -f") && !all.contains("umount -f"), "{one}{all}");
}

#[test]
fn invalid_command_line_exits_with_2_and_the_usage() {
    let home = TestHome::new();
    for arguments in
        [&["mout", "a", "b"][..], &["mount", "a:b"], &["mount", "a:b", "mnt", "--mode", "fast"], &[]]
    {
        let ran = home.wirefs(arguments);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("Usage") || ran.stderr.contains("--help"), "{ran:?}");
    }
}
