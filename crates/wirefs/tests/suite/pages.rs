//! Help, manual pages, completions.

use crate::world::World;

#[test]
fn help_has_examples_and_the_version_is_the_crates() {
    let world = World::new();
    assert!(world.wirefs(&["--help"]).succeeds().contains("Examples:"));
    assert_eq!(world.wirefs(&["--version"]).succeeds(), concat!("wirefs ", env!("CARGO_PKG_VERSION"), "\n"));
    let help = world.wirefs(&["mount", "--help"]).succeeds();
    for word in ["tls://", "/etc/fstab", "--deadline", "ssh_command="] {
        assert!(help.contains(word), "no {word} in {help}");
    }
    assert!(!help.contains("--reports"), "an option that is no user's");
}

#[test]
fn each_command_has_a_page() {
    let world = World::new();
    world.wirefs(&["man", "--out", "man"]).succeeds();
    for page in [
        "wirefs.1",
        "wirefs-mount.1",
        "wirefs-serve.1",
        "wirefs-umount.1",
        "wirefs-status.1",
        "wirefs-doctor.1",
    ] {
        assert!(world.read(&format!("man/{page}")).contains(".TH"), "{page}");
    }
    assert!(world.wirefs(&["man"]).succeeds().contains(".TH"));
}

#[test]
fn completions_know_the_commands() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(world.wirefs(&["completions", shell]).succeeds().contains("umount"), "{shell}");
    }
}
