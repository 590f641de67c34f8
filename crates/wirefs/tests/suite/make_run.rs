//! `make run`, on a terminal.

use crate::home::{TestHome, WIREFS};
use std::path::Path;
use wirefs_lab::Terminal;
use wirefs_lab::terminal::{CTRL_C, STARTER};

#[test]
fn make_run_ends_with_ctrl_c_and_without_an_error() {
    let home = TestHome::new();
    home.write("export/a", "hello\n");
    let _server = home.serve(&["--listen", &home.url()]);
    let mut command = home.command(STARTER);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    command.env("BUILT", Path::new(WIREFS).parent().unwrap()).env("AT", home.path("mnt"));
    command.env("FROM", home.url()).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    // The toolchain, whose version is checked, may be in the real home.
    command.env("HOME", std::env::var_os("HOME").unwrap_or_default());
    for (variable, name) in
        [("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")]
    {
        command.env(variable, home.path(name));
    }
    let terminal = Terminal::run(command, "make run").unwrap();
    terminal.await_text("mounted unix://", 1).unwrap();
    assert!(terminal.text().contains("in another terminal"), "{}", terminal.text());
    terminal.types(CTRL_C).unwrap();
    let (code, output) = terminal.end().unwrap();
    assert_eq!(code, Some(0), "{output}");
    assert!(output.trim_end().ends_with("unmounted"), "{output}");
    assert!(!output.contains("Error") && !output.contains("***"), "{output}");
    assert!(!home.is_mounted());
}
