//! ssh: quoting, output of login scripts, and error messages.

use std::time::Duration;

use wirefs_carrier::ssh::{Programs, SshDial, SshOptions};
use wirefs_carrier::{CarrierLost, Dial, DialError};

use crate::scratch::{Scratch, script};
use crate::testbeds::{Ssh, login};

/// Returns a dialer through a program made of `text`.
fn dial_through(scratch: &Scratch, text: &str) -> SshDial {
    let program = scratch.join("ssh");
    script(&program, &format!("#!/bin/sh\n{text}\n"));
    SshDial::new(login(), b"/srv".to_vec(), SshOptions::default().with_command(program))
}

#[test]
fn any_path_reaches_the_remote_wirefs_unchanged() {
    for testbed in [Ssh::with_script(), Ssh::with_sshd()] {
        for (path, seen) in
            [(&b"/srv/it's \"here\" $HOME"[..], "/srv/it's \"here\" $HOME"), (b"-v", "-v"), (b"", ".")]
        {
            drop(testbed.connect_to(path));
            assert_eq!(testbed.arguments(), format!("serve --stdio -- {seen}\n"));
        }
    }
}

#[test]
fn failures_of_ssh_and_of_the_remote_wirefs_are_distinguished() {
    let scratch = Scratch::new();
    let error =
        dial_through(&scratch, "echo 'Permission denied (publickey).' >&2; exit 255").dial().unwrap_err();
    assert!(matches!(&error, DialError::SshFailed { stderr, .. } if stderr.contains("publickey")), "{error}");

    let error = dial_through(
        &scratch,
        "for last; do :; done; PATH=/nowhere /bin/sh -c \"HOME=/nowhere; $last\"; exit 127",
    );
    assert!(matches!(error.dial(), Err(DialError::RemoteMissing { .. })));

    let error =
        dial_through(&scratch, "echo 'wirefs: /srv: no such directory' >&2; exit 2").dial().unwrap_err();
    assert!(error.to_string().contains("status 2\n  wirefs: /srv: no such directory"), "{error}");

    let missing = SshOptions::default().with_command("/nowhere/ssh -v");
    let error = SshDial::new(login(), Vec::new(), missing).dial().unwrap_err();
    assert!(matches!(error, DialError::SshMissing { .. }), "{error}");
}

#[test]
fn only_the_end_of_long_error_output_is_kept() {
    let scratch = Scratch::new();
    let text = "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done >&2; exit 255";
    match dial_through(&scratch, text).dial().unwrap_err() {
        DialError::SshFailed { stderr, .. } => {
            assert!(stderr.len() <= 4096 && stderr.ends_with("19999\n"), "{} bytes", stderr.len());
        }
        other => panic!("{other}"),
    }
}

#[test]
fn login_that_prints_without_end_fails() {
    let scratch = Scratch::new();
    let error = dial_through(&scratch, "exec yes").dial().unwrap_err().to_string();
    assert!(error.contains("prints too much text"), "{error}");
}

#[test]
fn silent_login_fails_after_the_timeout() {
    let scratch = Scratch::new();
    let program = scratch.join("ssh");
    script(&program, "#!/bin/sh\nexec cat\n");
    let mut options = SshOptions::default().with_command(program);
    options.answer_timeout = Duration::from_millis(50);
    let error = SshDial::new(login(), Vec::new(), options).dial().unwrap_err().to_string();
    assert!(error.contains("did not answer"), "{error}");
}

#[test]
fn background_dial_never_asks_for_passwords() {
    let scratch = Scratch::new();
    let dial = dial_through(&scratch, "echo \"$@\" >&2; exit 255");
    let asked = dial.dial().unwrap_err().to_string();
    assert!(!asked.contains("BatchMode"), "{asked}");
    let again = dial.dial_again().unwrap_err().to_string();
    assert!(again.contains("BatchMode=yes"), "{again}");
}

#[test]
fn lost_connection_reports_the_output_of_ssh() {
    let scratch = Scratch::new();
    let text =
        "printf '\\000wirefs-stdio-1\\n'; echo 'client_loop: send disconnect: Broken pipe' >&2; exit 255";
    let mut carrier = dial_through(&scratch, text).dial().unwrap();
    match carrier.source.receive() {
        Err(CarrierLost::Child { what, stderr }) => {
            assert!(
                what.contains("ssh connection broke") && stderr.contains("Broken pipe"),
                "{what}: {stderr}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn program_is_copied_where_the_dialer_finds_it() {
    for testbed in [Ssh::with_script(), Ssh::with_sshd()] {
        let copy = testbed.scratch.join("copy");
        script(&copy, "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\nexit 9\n");
        std::fs::remove_file(testbed.bin()).unwrap();
        // The real login's home must not be written to.
        let options = testbed.options_at_home().with_programs(Programs::of(&copy), |_| {});
        for _ in 0..2 {
            let error = SshDial::new(login(), Vec::new(), options.clone()).dial().unwrap_err().to_string();
            assert!(error.contains("status 9"), "the copy was started: {error}");
            let directory = testbed.scratch.join(".cache/wirefs/bin");
            let names: Vec<_> = std::fs::read_dir(directory).unwrap().flatten().collect();
            assert_eq!(names.len(), 1, "no draft is left behind");
            assert_eq!(std::fs::read(names[0].path()).unwrap(), std::fs::read(&copy).unwrap());
        }
    }
}

#[test]
fn program_that_does_not_run_is_not_kept() {
    let testbed = Ssh::with_script();
    std::fs::remove_file(testbed.bin()).unwrap();
    let copy = testbed.scratch.join("copy");
    script(&copy, "#!/bin/sh\necho 'GLIBC_2.99 not found' >&2\nexit 1\n");
    let options = testbed.options_at_home().with_programs(Programs::of(&copy), |_| {});
    match SshDial::new(login(), Vec::new(), options).dial() {
        Err(DialError::NotCopied { stderr, .. }) => assert!(stderr.contains("GLIBC_2.99"), "{stderr}"),
        other => panic!("{}", other.err().map(|error| error.to_string()).unwrap_or_default()),
    }
    let directory = testbed.scratch.join(".cache/wirefs/bin");
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0);
}

#[test]
fn machine_of_another_kind_is_reported() {
    let scratch = Scratch::new();
    let program = scratch.join("ssh");
    std::fs::create_dir(scratch.join("bin")).unwrap();
    script(&scratch.join("bin/uname"), "#!/bin/sh\necho Plan9 mips\n");
    let home = scratch.path().display();
    script(
        &program,
        &format!(
            "#!/bin/sh\nfor last; do :; done\nHOME={home} PATH={home}/bin:/usr/bin:/bin sh -c \"$last\"\n"
        ),
    );
    let options = SshOptions::default().with_command(&program).with_programs(Programs::of(&program), |_| {});
    let error = SshDial::new(login(), Vec::new(), options).dial().unwrap_err().to_string();
    assert!(error.contains("127.0.0.1") && error.contains("it is Plan9 mips"), "{error}");
}
