//! `wirefs reconnect`: a mount over ssh asks for its password again. A script replaces ssh, and asks as ssh does.

use crate::home::{Finished, TestHome, wait_for};
use crate::over_ssh::fake_ssh;
use wirefs_lab::Terminal;
use wirefs_lab::terminal::STARTER;

/// Once `locked` exists, the login needs the password `sesame`, as ssh does: none in batch mode, else three questions.
const ASKING_SSH: &str = "#!/bin/sh\n\
    cd HERE\n\
    while [ \"$1\" != -- ]; do [ \"$1\" = BatchMode=yes ] && batch=1; shift; done\n\
    shift 2\n\
    refuse() { echo 'me@host: Permission denied (password).' >&2; exit 255; }\n\
    if [ -e locked ]; then\n\
    [ -z \"$batch\" ] || refuse\n\
    for try in 1 2 3; do\n\
    echo ask >>asked\n\
    answer=$(\"$SSH_ASKPASS\" \"$(printf 'me@host\\033[8m password: ')\")\n\
    [ \"$answer\" = sesame ] && break\n\
    [ $try = 3 ] && refuse\n\
    done\n\
    fi\n\
    echo $$ >process\n\
    cd export\n\
    exec sh -c \"$*\"\n";

/// Mounts, then ends ssh, so that the next login needs the password.
fn locked_out() -> TestHome {
    let home = TestHome::new();
    home.write("export/a", "far away\n");
    let option = fake_ssh(&home, &ASKING_SSH.replace("HERE", &home.text("")));
    home.wirefs(&["mount", "me@host:", "mnt", "-o", &option]).succeeds();
    home.write("locked", "");
    let ssh = home.read("process").trim().parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(ssh, rustix::process::Signal::KILL).unwrap();
    wait_for("the status to name the reason", || {
        home.status()["connect_error"].as_str().is_some_and(|why| why.contains("wirefs reconnect"))
    });
    home
}

fn terminal(home: &TestHome, script: &str) -> Terminal {
    Terminal::run(home.command(STARTER), script).unwrap()
}

/// S-177: the password goes to ssh only, and is neither shown nor logged; the text of the host is escaped.
#[test]
fn reconnect_asks_again_and_shows_no_password() {
    let home = locked_out();
    let text = home.wirefs(&["status", "mnt"]).succeeds();
    assert!(text.contains("NOT CONNECTED") && text.contains("Permission denied (password)"), "{text}");
    let terminal = terminal(&home, "wirefs reconnect mnt; echo status $?; stty -a");
    terminal.await_text("password:", 1).unwrap();
    terminal.types("wrong\n").unwrap();
    terminal.await_text("password:", 2).unwrap();
    terminal.types("sesame\n").unwrap();
    let (_, output) = terminal.end().unwrap();
    assert!(output.contains("status 0") && output.contains("connected mnt again"), "{output}");
    assert!(!output.contains("sesame") && !output.contains("wrong"), "{output}");
    assert!(output.contains("me@host\\u{1b}[8m password:"), "{output}");
    assert!(output.contains(" echo ") && !output.contains("-echo "), "{output}");
    wait_for("the file to be read", || {
        std::fs::read_to_string(home.path("mnt/a")).is_ok_and(|text| text == "far away\n")
    });
    assert_eq!(home.status()["connect_error"], serde_json::Value::Null);
    let found = Finished::of(home.command("grep").args(["-r", "sesame", "home", "run"]));
    assert_eq!((found.code, found.stdout.as_str()), (Some(1), ""), "{found:?}");
    assert_eq!(home.wirefs(&["reconnect", "mnt"]).succeeds(), "connected mnt again\n");
}

/// S-177: Ctrl-C ends the command, restores the echo, and leaves nothing that the next one waits for.
#[test]
fn interrupted_reconnect_restores_the_terminal_and_can_be_repeated() {
    let home = locked_out();
    for round in 1..=3 {
        let terminal = terminal(&home, "trap : INT; wirefs reconnect mnt; echo status $?; stty -a");
        terminal.await_text("password:", 1).unwrap();
        terminal.types("ses\x03").unwrap();
        let (_, output) = terminal.end().unwrap();
        assert!(output.contains("status 130"), "{round}: {output}");
        assert!(output.contains(" echo ") && !output.contains("-echo "), "{round}: {output}");
        assert!(!output.contains("ses\r"), "{round}: {output}");
    }
    let terminal = terminal(&home, "wirefs reconnect mnt");
    terminal.await_text("password:", 1).unwrap();
    terminal.types("sesame\n").unwrap();
    assert_eq!(terminal.end().unwrap().0, Some(0));
    let left = std::fs::read_dir(home.path("run/wirefs")).unwrap().flatten();
    assert_eq!(left.filter(|entry| entry.path().extension().is_some_and(|it| it == "prompts")).count(), 0);
}

#[test]
fn reconnect_reports_errors() {
    let home = locked_out();
    let terminal = terminal(&home, "wirefs reconnect mnt");
    for count in 1..=3 {
        terminal.await_text("password:", count).unwrap();
        terminal.types("wrong\n").unwrap();
    }
    let (code, output) = terminal.end().unwrap();
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("cannot connect mnt again") && output.contains("Permission denied"), "{output}");
    // Without a terminal.
    let mut command = home.command("setsid");
    Finished::of(command.args(["-w", "wirefs", "reconnect", "mnt"])).fails_with(&["in a terminal"]);
    home.wirefs(&["pause", "mnt"]).succeeds();
    home.wirefs(&["reconnect", "mnt"]).fails_with(&["paused", "wirefs resume"]);
    home.wirefs(&["umount", "-f", "mnt"]).succeeds();
    let _server = home.mounted();
    home.wirefs(&["reconnect", "mnt"]).fails_with(&["not a mount of a wirefs over ssh"]);
}
