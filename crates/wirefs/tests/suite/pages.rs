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

#[test]
fn pages_have_values_files_exit_status_and_other_pages() {
    let home = TestHome::new();
    home.wirefs(&["man", "--out", "man"]).succeeds();
    for page in ["wirefs.1", "wirefs-mount.1", "wirefs-umount.1", "wirefs-echo.1"] {
        let text = home.read(&format!("man/{page}"));
        for section in ["FILES", "EXIT STATUS", "SEE ALSO"] {
            assert!(text.contains(section), "no {section} in {page}");
        }
    }
    let mount = home.read("man/wirefs-mount.1");
    for value in ["window", "session", "strict"] {
        assert!(mount.contains(value), "no mode {value}");
    }
    assert!(!mount.contains("reports") && !mount.contains("fake"), "an option that is no user's");
}

#[test]
fn completions_offer_values_and_no_inner_options() {
    let home = TestHome::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = home.wirefs(&["completions", shell]).succeeds();
        for inner in ["--reports", "--fake", "l reports", "l fake"] {
            assert!(!script.contains(inner), "{inner} for {shell}");
        }
        assert!(script.contains("session"), "modes for {shell}");
        assert!(script.contains("journal"), "values of --fsync for {shell}");
    }
}

#[test]
fn bash_completes_mountpoints_of_umount() {
    let home = TestHome::new();
    let _server = home.mounted();
    let script = home.wirefs(&["completions", "bash"]).succeeds();
    home.write("completions", &script);
    let ask = "source completions; COMP_WORDS=(wirefs umount /); COMP_CWORD=2; \
               _wirefs_or_mountpoints wirefs / umount; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let offered = crate::home::Finished::of(home.command("bash").args(["-c", ask])).succeeds();
    assert!(offered.lines().any(|line| line == home.text("mnt")), "{offered}");
    home.wirefs(&["umount", "mnt"]).succeeds();
}
