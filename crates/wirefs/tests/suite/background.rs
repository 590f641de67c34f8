//! The background process: resources that it keeps and releases.

use crate::home::{Finished, TestHome, WIREFS, is_alive, wait_for};
use rustix::process::{Signal, getpgid, getsid, kill_process};

#[test]
fn background_process_detaches_from_terminal_directory_and_standard_streams() {
    let home = TestHome::new();
    let _server = home.mounted();
    let process = home.process();
    assert_eq!(getsid(Some(process)).unwrap(), process);
    assert_eq!(getpgid(Some(process)).unwrap(), process);
    let link = |name: &str| {
        let path = format!("/proc/{}/{name}", process.as_raw_nonzero());
        std::fs::read_link(path).unwrap().to_str().unwrap().to_owned()
    };
    assert_eq!(link("cwd"), "/");
    assert_eq!(link("fd/0"), "/dev/null");
    let log = link("fd/2");
    assert!(log.starts_with(&home.text("home/.local/state/wirefs/")) && log.ends_with(".log"), "{log}");
    home.wirefs(&["umount", "mnt"]).succeeds();
    wait_for("the process to end", || !is_alive(process));
}

#[test]
fn background_process_is_called_wirefs() {
    let home = TestHome::new();
    let _server = home.mounted();
    let name = std::fs::read_to_string(format!("/proc/{}/comm", home.process().as_raw_nonzero())).unwrap();
    assert_eq!(name, "wirefs\n");
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn log_has_the_time_and_names_each_loss_of_the_connection_and_its_end() {
    let home = TestHome::new();
    let server = home.mounted();
    server.kill(Signal::KILL);
    drop(server);
    // The first attempt may still reach the server that is being killed, and has another reason then.
    wait_for("the reason in the status", || {
        home.wirefs(&["status", "mnt"]).succeeds().contains("cannot connect to")
    });
    let _again = home.serve(&["--listen", &home.url()]);
    wait_for("the connection", || home.status()["connected"] == true);
    wait_for("the reason to go", || home.status()["connect_error"].is_null());
    home.wirefs(&["umount", "mnt"]).succeeds();
    let dir = std::fs::read_dir(home.path("home/.local/state/wirefs")).unwrap().flatten();
    let log = dir.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|e| e == "log"));
    let log = std::fs::read_to_string(log.unwrap()).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let (Some((first, rest)), true) = (lines.split_first(), lines.len() >= 3) else { panic!("{log}") };
    let (last, attempts) = rest.split_last().unwrap();
    assert!(first.contains("lost the connection to") && last.contains("again after"), "{log}");
    assert!(attempts.iter().all(|line| line.contains("cannot connect again")), "{log}");
    for line in lines {
        let (time, _) = line.split_once(' ').unwrap();
        assert!(time.len() == 20 && time.ends_with('Z') && time.contains('T'), "{line}");
    }
}

#[test]
fn background_process_keeps_no_inherited_descriptor() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    home.write("held", "");
    let script = format!("exec 9<held; wirefs mount {} mnt", home.url());
    Finished::of(home.command("sh").args(["-c", &script])).succeeds();
    let fds = std::fs::read_dir(format!("/proc/{}/fd", home.process().as_raw_nonzero())).unwrap();
    let open: Vec<_> = fds.flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
    assert!(!open.contains(&home.path("held")), "{open:?}");
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn background_process_unmounts_on_sigterm_and_removes_its_socket() {
    let home = TestHome::new();
    let _server = home.mounted();
    let process = home.process();
    assert_eq!(std::fs::read_dir(home.path("run/wirefs")).unwrap().count(), 1);
    kill_process(process, Signal::TERM).unwrap();
    wait_for("the process to end", || !is_alive(process));
    assert!(!home.is_mounted());
    assert_eq!(std::fs::read_dir(home.path("run/wirefs")).unwrap().count(), 0);
}

#[test]
fn files_of_a_mount_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = TestHome::new();
    let _server = home.mounted();
    home.wirefs(&["identity"]).succeeds();
    let mode = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for directory in ["home/.config/wirefs", "home/.local/state/wirefs", "run/wirefs"] {
        assert_eq!(mode(home.path(directory)), 0o700, "{directory}");
    }
    assert_eq!(mode(home.path("home/.config/wirefs/identity.pem")), 0o600);
    let socket = std::fs::read_dir(home.path("run/wirefs")).unwrap().next().unwrap().unwrap();
    assert_eq!(mode(socket.path()), 0o600);
}

#[test]
fn directories_of_the_environment_are_used() {
    let home = TestHome::new();
    let server = home.serve(&["--listen", &home.url()]);
    let run = |arguments: &[&str]| {
        let mut command = home.command(WIREFS);
        command.env_remove("HOME").env("XDG_CONFIG_HOME", home.path("config"));
        command.env("XDG_STATE_HOME", home.path("state")).env("XDG_RUNTIME_DIR", home.path("elsewhere"));
        Finished::of(command.args(arguments)).succeeds();
    };
    run(&["identity"]);
    assert!(home.path("config/wirefs/identity.pem").exists());
    run(&["mount", "--no-journal", &home.url(), "mnt"]);
    // The log.
    assert_eq!(std::fs::read_dir(home.path("state/wirefs")).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(home.path("elsewhere/wirefs")).unwrap().count(), 1);
    run(&["umount", "mnt"]);
    drop(server);
}

#[test]
fn command_ended_while_connecting_leaves_no_mount() {
    let home = TestHome::new();
    // A server that accepts connections and never replies.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let source = format!("tcp+plain://{}/", silent.local_addr().unwrap());
    let mut command = home.command(WIREFS);
    command.args(["mount", &source, "mnt"]).stderr(std::process::Stdio::null());
    // As a terminal does: both processes get the signal.
    let mut child = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().unwrap();
    let (connected, _) = silent.accept().unwrap();
    let group = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process_group(group, Signal::INT).unwrap();
    let status = child.wait().unwrap();
    assert!(!status.success(), "{status}");
    wait_for("both to end", || rustix::process::test_kill_process_group(group).is_err());
    assert!(!home.is_mounted());
    drop(connected);
}

#[test]
fn closed_reader_ends_no_server() {
    let home = TestHome::new();
    let mut command = home.command("sh");
    let script = format!("wirefs serve export --listen {} | head -n 1", home.url());
    let mut child = command.args(["-c", &script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    wait_for("the socket", || home.path("socket").exists());
    home.wirefs(&["mount", &home.url(), "mnt"]).succeeds();
    let process = home.process();
    home.wirefs(&["umount", "mnt"]).succeeds();
    wait_for("the process to end", || !is_alive(process));
    let server = rustix::net::sockopt::socket_peercred(
        std::os::unix::net::UnixStream::connect(home.path("socket")).unwrap(),
    );
    kill_process(server.unwrap().pid, Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn runtime_directory_with_a_long_path_works() {
    let home = TestHome::new();
    let _server = home.serve(&["--listen", &home.url()]);
    let runtime = home.path(&"r".repeat(150));
    let run = |arguments: &[&str]| {
        Finished::of(home.command(WIREFS).args(arguments).env("XDG_RUNTIME_DIR", &runtime)).succeeds()
    };
    run(&["mount", &home.url(), "mnt"]);
    let status: serde_json::Value = serde_json::from_str(&run(&["status", "--json", "mnt"])).unwrap();
    let process = rustix::process::Pid::from_raw(status["process"].as_i64().unwrap() as i32).unwrap();
    run(&["umount", "mnt"]);
    wait_for("the process to end", || !is_alive(process));
}
