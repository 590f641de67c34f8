//! `make run RTT=85`, on a terminal, over an emulated line.

use std::fs;
use std::path::Path;
use std::process::Command;

use wirefs_lab::Terminal;
use wirefs_lab::terminal::{CTRL_C, STARTER};

#[test]
fn make_run_with_a_round_trip_time_mounts_until_ctrl_c() {
    let at = std::env::temp_dir().join(format!("wirefs-make-run-{}", std::process::id()));
    fs::create_dir(&at).unwrap();
    let mut command = Command::new(STARTER);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command.env("BUILT", Path::new(env!("CARGO_BIN_EXE_wirefs-lab")).parent().unwrap());
    command.env("AT", at.join("mnt")).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    for (variable, name) in [
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_STATE_HOME", "state"),
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_RUNTIME_DIR", "run"),
    ] {
        fs::create_dir(at.join(name)).unwrap();
        command.env(variable, at.join(name));
    }
    let terminal = Terminal::run(command, "make run RTT=85").unwrap();
    terminal.await_text("mounted tcp+plain://", 1).unwrap();
    assert!(at.join("mnt/README.md").exists());
    terminal.types(CTRL_C).unwrap();
    let (code, output) = terminal.end().unwrap();
    assert_eq!(code, Some(0), "{output}");
    assert!(output.trim_end().ends_with("unmounted; the server is stopped"), "{output}");
    assert!(!at.join("mnt/README.md").exists());
    fs::remove_dir_all(&at).unwrap();
}
