//! Help texts, manual pages, completions.

use crate::home::TestHome;

#[test]
fn help_has_examples_and_the_version_is_the_crates() {
    let home = TestHome::new();
    assert!(home.wirefs(&["--help"]).succeeds().contains("Examples:"));
    assert_eq!(home.wirefs(&["--version"]).succeeds(), concat!("wirefs ", env!("CARGO_PKG_VERSION"), "\n"));
    let help = home.wirefs(&["mount", "--help"]).succeeds();
    for word in ["tls://", "/etc/fstab", "--deadline", "ssh_command="] {
        assert!(help.contains(word), "no {word} in {help}");
    }
    assert!(!help.contains("--reports"), "an option that is no user's");
}

#[test]
fn each_command_has_a_page() {
    let home = TestHome::new();
    home.wirefs(&["man", "--out", "man"]).succeeds();
    for page in [
        "wirefs.1",
        "wirefs-mount.1",
        "wirefs-serve.1",
        "wirefs-umount.1",
        "wirefs-status.1",
        "wirefs-doctor.1",
    ] {
        assert!(home.read(&format!("man/{page}")).contains(".TH"), "{page}");
    }
    assert!(home.wirefs(&["man"]).succeeds().contains(".TH"));
}

#[test]
fn completions_know_the_commands() {
    let home = TestHome::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(home.wirefs(&["completions", shell]).succeeds().contains("umount"), "{shell}");
    }
}
