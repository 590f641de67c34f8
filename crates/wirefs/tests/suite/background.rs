//! What the process in the background keeps, and what it lets go.

use crate::world::{Ran, WIREFS, World, is_alive, wait_for};
use rustix::process::{Signal, getpgid, getsid, kill_process};

#[test]
fn it_leaves_the_terminal_the_directory_and_the_standard_streams() {
    let world = World::new();
    let _server = world.mounted();
    let process = world.process();
    assert_eq!(getsid(Some(process)).unwrap(), process);
    assert_eq!(getpgid(Some(process)).unwrap(), process);
    let link = |name: &str| {
        let path = format!("/proc/{}/{name}", process.as_raw_nonzero());
        std::fs::read_link(path).unwrap().to_str().unwrap().to_owned()
    };
    assert_eq!(link("cwd"), "/");
    assert_eq!(link("fd/0"), "/dev/null");
    let log = link("fd/2");
    assert!(log.starts_with(&world.text("home/.local/state/wirefs/")) && log.ends_with(".log"), "{log}");
    world.wirefs(&["umount", "mnt"]).succeeds();
    wait_for("the process to end", || !is_alive(process));
}

#[test]
fn it_keeps_no_descriptor_that_the_caller_left_open() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    world.write("held", "");
    let script = format!("exec 9<held; wirefs mount {} mnt", world.url());
    Ran::of(world.command("sh").args(["-c", &script])).succeeds();
    let fds = std::fs::read_dir(format!("/proc/{}/fd", world.process().as_raw_nonzero())).unwrap();
    let open: Vec<_> = fds.flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
    assert!(!open.contains(&world.path("held")), "{open:?}");
    world.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn it_unmounts_on_sigterm_and_removes_its_socket() {
    let world = World::new();
    let _server = world.mounted();
    let process = world.process();
    assert_eq!(std::fs::read_dir(world.path("run/wirefs")).unwrap().count(), 1);
    kill_process(process, Signal::TERM).unwrap();
    wait_for("the process to end", || !is_alive(process));
    assert!(!world.is_mounted());
    assert_eq!(std::fs::read_dir(world.path("run/wirefs")).unwrap().count(), 0);
}

#[test]
fn its_files_are_for_the_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let _server = world.mounted();
    world.wirefs(&["identity"]).succeeds();
    let mode = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for directory in ["home/.config/wirefs", "home/.local/state/wirefs", "run/wirefs"] {
        assert_eq!(mode(world.path(directory)), 0o700, "{directory}");
    }
    assert_eq!(mode(world.path("home/.config/wirefs/identity.pem")), 0o600);
    let socket = std::fs::read_dir(world.path("run/wirefs")).unwrap().next().unwrap().unwrap();
    assert_eq!(mode(socket.path()), 0o600);
}

#[test]
fn directories_that_the_environment_names_are_used() {
    let world = World::new();
    let server = world.serve(&["--listen", &world.url()]);
    let run = |arguments: &[&str]| {
        let mut command = world.command(WIREFS);
        command.env_remove("HOME").env("XDG_CONFIG_HOME", world.path("config"));
        command.env("XDG_STATE_HOME", world.path("state")).env("XDG_RUNTIME_DIR", world.path("elsewhere"));
        Ran::of(command.args(arguments)).succeeds();
    };
    run(&["identity"]);
    assert!(world.path("config/wirefs/identity.pem").exists());
    run(&["mount", "--no-journal", &world.url(), "mnt"]);
    // The log.
    assert_eq!(std::fs::read_dir(world.path("state/wirefs")).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(world.path("elsewhere/wirefs")).unwrap().count(), 1);
    run(&["umount", "mnt"]);
    drop(server);
}

#[test]
fn a_command_that_is_ended_while_it_connects_leaves_no_mount() {
    let world = World::new();
    // A server that takes connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let source = format!("tcp+plain://{}/", silent.local_addr().unwrap());
    let mut command = world.command(WIREFS);
    command.args(["mount", &source, "mnt"]).stderr(std::process::Stdio::null());
    // As a terminal does: both its processes get the signal.
    let mut child = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().unwrap();
    let (connected, _) = silent.accept().unwrap();
    let group = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process_group(group, Signal::INT).unwrap();
    let status = child.wait().unwrap();
    assert!(!status.success(), "{status}");
    wait_for("both to end", || rustix::process::test_kill_process_group(group).is_err());
    assert!(!world.is_mounted());
    drop(connected);
}

#[test]
fn a_reader_that_goes_away_ends_no_server() {
    let world = World::new();
    let mut command = world.command("sh");
    let script = format!("wirefs serve export --listen {} | head -n 1", world.url());
    let mut child = command.args(["-c", &script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    wait_for("the socket", || world.path("socket").exists());
    world.wirefs(&["mount", &world.url(), "mnt"]).succeeds();
    let process = world.process();
    world.wirefs(&["umount", "mnt"]).succeeds();
    wait_for("the process to end", || !is_alive(process));
    let server = rustix::net::sockopt::socket_peercred(
        std::os::unix::net::UnixStream::connect(world.path("socket")).unwrap(),
    );
    kill_process(server.unwrap().pid, Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_runtime_directory_with_a_longer_name_than_an_address_serves_too() {
    let world = World::new();
    let _server = world.serve(&["--listen", &world.url()]);
    let runtime = world.path(&"r".repeat(150));
    let run = |arguments: &[&str]| {
        Ran::of(world.command(WIREFS).args(arguments).env("XDG_RUNTIME_DIR", &runtime)).succeeds()
    };
    run(&["mount", &world.url(), "mnt"]);
    let status: serde_json::Value = serde_json::from_str(&run(&["status", "--json", "mnt"])).unwrap();
    let process = rustix::process::Pid::from_raw(status["process"].as_i64().unwrap() as i32).unwrap();
    run(&["umount", "mnt"]);
    wait_for("the process to end", || !is_alive(process));
}
