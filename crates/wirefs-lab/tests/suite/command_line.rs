//! The program: exit codes, machine-readable output, and cleanup after signals.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

const PROGRAM: &str = env!("CARGO_BIN_EXE_wirefs-lab");

fn scratch_directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("wirefs-lab-{name}-{}", std::process::id()));
    fs::create_dir(&path).unwrap();
    path
}

#[test]
fn link_runs_a_command_on_the_client_and_returns_its_exit_code() {
    let script = "test \"$(cat /proc/sys/net/ipv4/tcp_rmem | cut -f3)\" = 33554432 \
                  && ip -brief address | grep -q \"$WIREFS_LAB_CLIENT_ADDRESS\" && exit 7";
    let run = Command::new(PROGRAM)
        .args(["link", "--rtt", "1", "--json", "--", "sh", "-c", script])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(7), "{run:?}");
    assert!(String::from_utf8(run.stderr).unwrap().contains("\"offered_frames\":"));
}

#[test]
fn up_prints_names_serves_its_socket_and_cleans_up_at_the_end() {
    let at = scratch_directory("up");
    let (socket, ready) = (at.join("control"), at.join("ready"));
    let mut up = Command::new(PROGRAM)
        .args(["up", "--name", "test", "--rtt", "10", "--control"])
        .arg(&socket)
        .arg("--ready")
        .arg(&ready)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(up.stdout.take().unwrap());
    let mut server = String::new();
    lines.read_line(&mut server).unwrap();
    let server = server.trim().strip_prefix("WIREFS_LAB_SERVER=").unwrap().to_owned();

    let request = |words: &str| {
        let mut control = Command::new(PROGRAM);
        let output = control.arg("control").arg(&socket).args(words.split_whitespace()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert!(request("cut").1.contains("\"dropped_by_cut\":0"));
    assert_eq!(request("set --rtt 5 --loss 2%").0, Some(0));
    let (code, reply) = request("set --loss often");
    assert!(code == Some(1) && reply.contains("error"), "{reply}");
    let inside = Command::new(PROGRAM).args(["exec", &server, "ip", "-brief", "link"]).output().unwrap();
    assert!(String::from_utf8(inside.stdout).unwrap().contains("link1"));

    kill_process(Pid::from_child(&up), Signal::TERM).unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(up.wait().unwrap().success());
    assert!(!Path::new("/run/netns").join(&server).exists());
    assert!(!socket.exists() && !ready.exists());
    fs::remove_dir(&at).unwrap();
}

#[test]
fn terminated_command_removes_the_lab() {
    let script = "echo $WIREFS_LAB_SERVER; exec sleep infinity";
    let mut link = Command::new(PROGRAM)
        .args(["link", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut server = String::new();
    BufReader::new(link.stdout.take().unwrap()).read_line(&mut server).unwrap();
    assert!(Path::new("/run/netns").join(server.trim()).exists());
    kill_process(Pid::from_child(&link), Signal::TERM).unwrap();
    link.wait().unwrap();
    assert!(!Path::new("/run/netns").join(server.trim()).exists());
}

#[test]
fn without_root_the_program_reports_that_it_needs_root() {
    // A copy, because an ordinary user may not have access to cargo's target directory.
    let at = scratch_directory("nobody");
    let program = at.join("program");
    crate::site::copy_program(Path::new(PROGRAM), &program);
    let run = Command::new(&program).arg("check").current_dir("/").uid(65_534).gid(65_534).output().unwrap();
    fs::remove_dir_all(&at).unwrap();
    assert_eq!(run.status.code(), Some(2));
    let stderr = String::from_utf8(run.stderr).unwrap();
    assert!(stderr.contains("needs root"), "{stderr}");
}

#[test]
fn bench_writes_tables_to_the_page_and_runs_to_json() {
    let at = scratch_directory("bench");
    let (page, json) = (at.join("page.md"), at.join("runs.json"));
    let run = |extra: &[&str]| {
        let mut bench = Command::new(PROGRAM);
        bench.args([
            "bench",
            "--short",
            "--bulk",
            "256k",
            "--rtt",
            "0,2",
            "--runs",
            "1",
            "--peers",
            "local,bare",
        ]);
        bench.args(extra).arg("--json").arg(&json).output().unwrap()
    };
    let only = run(&["--only", "read-one,bulk-read,create"]);
    let text = String::from_utf8(only.stdout).unwrap();
    assert!(only.status.success() && text.contains("### RTT 2 ms"), "{text}");
    let runs = fs::read_to_string(&json).unwrap();
    // Per round-trip time: two steps of read-one, create, and bulk-read on two peers.
    assert_eq!(runs.matches("\"seconds\":").count(), 2 * 5, "{runs}");

    let partial = run(&["--only", "create", "--out", page.to_str().unwrap()]);
    assert!(!partial.status.success() && !page.exists());
    fs::remove_dir_all(&at).unwrap();
}

#[test]
fn missing_peer_is_an_error_with_the_install_command() {
    let run = Command::new(PROGRAM)
        .args(["bench", "--only", "read-one", "--peers", "sshfs", "--rtt", "0"])
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2));
    let stderr = String::from_utf8(run.stderr).unwrap();
    assert!(stderr.contains("`sshfs` is missing; on Debian: apt-get install sshfs"), "{stderr}");
}
