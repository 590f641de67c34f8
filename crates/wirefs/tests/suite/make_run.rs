//! `make run`, on a terminal.

use crate::home::{TestHome, WIREFS, wait_for};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

#[test]
fn make_run_ends_with_ctrl_c_and_without_an_error() {
    let home = TestHome::new();
    home.write("export/a", "hello\n");
    let _server = home.serve(&["--listen", &home.url()]);
    let mut command = home.command("script");
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).args([
        "-qec",
        "make run",
        "/dev/null",
    ]);
    command.env("BUILT", Path::new(WIREFS).parent().unwrap()).env("AT", home.path("mnt"));
    command.env("FROM", home.url()).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    // The toolchain, whose version is checked, may be in the real home.
    command.env("HOME", std::env::var_os("HOME").unwrap_or_default());
    for (variable, name) in
        [("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")]
    {
        command.env(variable, home.path(name));
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let output = Arc::new(Mutex::new(String::new()));
    let mut stdout = child.stdout.take().unwrap();
    let heard = Arc::clone(&output);
    let reader = std::thread::spawn(move || {
        let mut chunk = [0; 1024];
        while let Ok(count @ 1..) = stdout.read(&mut chunk) {
            heard.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..count]));
        }
    });
    let has = |text: &str| output.lock().unwrap().contains(text);
    wait_for("the mount", || has("mounted unix://"));
    assert!(has("in another terminal"), "{}", output.lock().unwrap());
    child.stdin.as_ref().unwrap().write_all(b"\x03").unwrap();
    wait_for("the end", || child.try_wait().unwrap().is_some());
    reader.join().unwrap();
    let output = output.lock().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{output}");
    assert!(output.trim_end().ends_with("unmounted"), "{output}");
    assert!(!output.contains("Error") && !output.contains("***"), "{output}");
    assert!(!home.is_mounted());
}
