//! Checks of the machine.

use crate::home::{Finished, TestHome, WIREFS};

#[test]
fn each_check_has_a_state_and_each_problem_a_fix() {
    let home = TestHome::new();
    let ran = home.wirefs(&["doctor", "--json"]);
    let checks: Vec<serde_json::Value> = serde_json::from_str(&ran.stdout).unwrap();
    let is_bad = checks.iter().any(|check| check["state"] == "bad");
    assert_eq!(ran.code, Some(i32::from(is_bad)));
    for check in &checks {
        let is_ok = check["state"] == "ok";
        assert_eq!(check["mend"].is_null(), is_ok, "{check}");
        assert!(check["found"].as_str().is_some_and(|found| !found.is_empty()), "{check}");
    }
    for name in
        ["/dev/fuse", "kernel", "rights", "fusermount3", "ssh", "keys", "control sockets", "MTU", "mount -t"]
    {
        assert!(checks.iter().any(|check| check["check"] == name), "no check {name}");
    }
}

#[test]
fn keys_readable_by_others_are_bad() {
    use std::os::unix::fs::PermissionsExt;
    let home = TestHome::new();
    home.wirefs(&["identity"]).succeeds();
    let key = home.path("home/.config/wirefs/identity.pem");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let ran = home.wirefs(&["doctor"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("BAD") && ran.stdout.contains("chmod 700"), "{}", ran.stdout);
}

#[test]
fn missing_program_is_reported_with_its_package() {
    let home = TestHome::new();
    let ran = Finished::of(home.command(WIREFS).env("PATH", home.path("home")).arg("doctor"));
    for word in ["fuse3", "openssh-client"] {
        assert!(ran.stdout.contains(word), "{}", ran.stdout);
    }
}
