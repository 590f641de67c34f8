//! A shell whose current directory is in a mount, while the server is down.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use crate::site::{Site, wait_for};

/// An ordinary user: Debian's `daemon`.
const USER: u32 = 1;

// S-33
#[test]
fn shell_keeps_its_current_directory_while_the_server_is_down() {
    // As an ordinary user: the kernel skips permission calls on parent directories and looks up their names.
    let site = Site::unix_of_user("standing", USER);
    let here = site.export().join("here");
    fs::create_dir(&here).unwrap();
    fs::write(here.join("file"), "text").unwrap();
    // Names expire after a second.
    let mount = site.mount("mnt", &["--mode", "window", "--deadline", "1s"]);
    let (here, mut command) = (mount.join("here"), site.command("sh"));
    command.args(["-c", "cd \"$0\"; while read go; do readlink /proc/self/cwd; done; cat file"]).arg(&here);
    let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut rounds = shell.stdin.take().unwrap();
    wait_for("the shell to be there", || {
        let name = |process: &str| fs::read_link(format!("/proc/{process}/cwd")).ok();
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", shell.id())).unwrap();
        children.split_whitespace().any(|child| name(child).as_ref() == Some(&here))
    });
    site.kill_server();
    wait_for("the mount to say so", || {
        let output = site.command("stat").arg(&here).output().unwrap();
        String::from_utf8_lossy(&output.stderr).contains("Host is down")
    });
    rounds.write_all(b"go\n").unwrap();
    site.start_server();
    wait_for("the server to be back", || site.command("stat").arg(&here).output().unwrap().status.success());
    rounds.write_all(b"go\n").unwrap();
    drop(rounds);
    let stdout = String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(stdout, format!("{0}\n{0}\ntext", here.display()));
}
