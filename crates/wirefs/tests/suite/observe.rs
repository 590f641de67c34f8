//! Metrics, `top` and `why` on real mounts.

use crate::home::{SecondMount, Server, TestHome, is_stopped, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// Calls with a frozen peer must outlast a machine that stands still.
const DEADLINE: &str = "10m";

/// Gets a page of a mount's metrics port.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    body.to_owned()
}

fn json(home: &TestHome, arguments: &[&str]) -> Value {
    serde_json::from_str(&home.wirefs(arguments).succeeds()).unwrap()
}

/// The waits that `wirefs why` reports of a process.
fn waits_of(home: &TestHome, process: u32) -> Vec<Value> {
    json(home, &["why", "--json", &process.to_string()]).as_array().unwrap().clone()
}

/// Checks that the causes of a finished wait leave nothing unexplained. Each is rounded down to a microsecond.
fn assert_explained(wait: &Value) {
    let causes = wait["causes_us"].as_object().unwrap();
    let sum: u64 = causes.values().map(|micros| micros.as_u64().unwrap()).sum();
    let waited = wait["waited_us"].as_u64().unwrap();
    assert!(sum <= waited && waited - sum <= 14, "{wait}");
}

/// A mount with a long deadline at `mnt`, and its server.
fn mounted(home: &TestHome) -> Server {
    let server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", "--deadline", DEADLINE, &home.url(), "mnt"]).succeeds();
    server
}

/// A frozen process, which goes on when this is dropped.
struct Frozen(Pid);

impl Frozen {
    fn freeze(process: Pid) -> Frozen {
        kill_process(process, Signal::STOP).unwrap();
        wait_for("the process to stop", || is_stopped(process));
        Frozen(process)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        kill_process(self.0, Signal::CONT).unwrap();
    }
}

/// Waits until a call of the process has waited for 50 ms for one of these causes.
fn await_cause(home: &TestHome, process: u32, causes: &[&str]) {
    wait_for(&format!("a wait for {causes:?}"), || {
        waits_of(home, process).iter().any(|wait| {
            let is_long = wait["waited_us"].as_u64() >= Some(50_000);
            let present = wait["causes_us"].as_object().unwrap().keys().next();
            is_long
                && wait["ended_ago_us"].is_null()
                && present.is_some_and(|cause| causes.contains(&cause.as_str()))
        })
    });
}

/// A finished wait of the process, once it is reported.
fn finished(home: &TestHome, process: u32) -> Value {
    let mut found = Value::Null;
    wait_for("a finished wait", || {
        let waits = waits_of(home, process);
        found = waits.into_iter().find(|wait| !wait["ended_ago_us"].is_null()).unwrap_or_default();
        !found.is_null()
    });
    found
}

#[test]
fn metrics_of_a_mount_count_its_calls() {
    let home = TestHome::new();
    home.write("export/a", "text");
    let _server = home.serve(&["--listen", &home.url()]);
    home.wirefs(&["mount", "-o", "metrics=127.0.0.1:0", &home.url(), "mnt"]).succeeds();
    assert_eq!(home.read("mnt/a"), "text");
    let address = home.status()["metrics"].as_str().unwrap().to_owned();
    let text = get(&address, "/metrics");
    assert!(text.starts_with("# TYPE wirefs_call_seconds histogram\n"), "{text}");
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    let mount = home.text("mnt");
    let count = format!("wirefs_call_seconds_count{{mount=\"{mount}\",operation=\"open\"}} ");
    let opened = text.lines().find_map(|line| line.strip_prefix(&count)).unwrap();
    assert!(opened.parse::<u64>().unwrap() >= 1, "{text}");
    assert!(text.contains(&format!("wirefs_connected{{mount=\"{mount}\"}} 1\n")), "{text}");
    let samples: Value = serde_json::from_str(&get(&address, "/samples.json")).unwrap();
    assert_eq!(samples[0]["status"]["mountpoint"], mount.as_str());
    assert!(get(&address, "/").contains("<title>wirefs</title>"));
}

/// Returns the metrics that a file of the package uses.
fn used_metrics(file: &str) -> BTreeSet<String> {
    let path = format!("{}/../../packaging/monitoring/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("wirefs_")).map(str::to_owned).collect()
}

#[test]
fn dashboard_and_alerts_use_metrics_that_exist() {
    let home = TestHome::new();
    home.write("export/a", "text");
    let mut command = home.command(crate::home::WIREFS);
    command.args(["serve", "export", "--listen", &home.url(), "--metrics", "127.0.0.1:0"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let server = Server::start(command);
    home.wirefs(&["mount", "--metrics", "127.0.0.1:0", &home.url(), "mnt"]).succeeds();
    assert_eq!(home.read("mnt/a"), "text");
    let of_server = server.line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    let of_mount = home.status()["metrics"].as_str().unwrap().to_owned();
    let text = [get(of_server, "/metrics"), get(&of_mount, "/metrics")].concat();
    for name in used_metrics("grafana.json").union(&used_metrics("alerts.yml")) {
        let is_there = text
            .lines()
            .any(|line| line.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(['{', ' '])));
        assert!(is_there, "no {name}");
    }
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn top_shows_operations_and_their_causes() {
    let home = TestHome::new();
    home.write("export/a", "text");
    let _server = home.mounted();
    assert_eq!(home.read("mnt/a"), "text");
    let shown = home.wirefs(&["top", "--once"]).succeeds();
    assert!(shown.contains(&home.text("mnt")) && shown.contains("\n  open "), "{shown}");
    let samples = json(&home, &["top", "--json"]);
    let operations = samples[0]["activity"]["operations"].as_array().unwrap().clone();
    let open = operations.iter().find(|operation| operation["name"] == "open").unwrap();
    assert!(open["calls"].as_u64() >= Some(1) && open["causes_us"].is_object(), "{open}");
}

// S-151
#[test]
fn frozen_server_is_named_as_the_cause() {
    let home = TestHome::new();
    home.write("export/a", "text");
    let server = mounted(&home);
    let frozen = Frozen::freeze(server.process());
    let mut reader = home.command("cat");
    let mut reader = reader.arg("mnt/a").stdout(Stdio::piped()).spawn().unwrap();
    // After 8 s of silence the mount gives the connection up.
    await_cause(&home, reader.id(), &["wire", "offline"]);
    let words = home.wirefs(&["why", &reader.id().to_string()]).succeeds();
    assert!(words.starts_with(&format!("cat ({}): ", reader.id())), "{words}");
    drop(frozen);
    let wait = finished(&home, reader.id());
    assert_explained(&wait);
    assert!(!wait["causes_us"]["wire"].is_null() || !wait["causes_us"]["offline"].is_null(), "{wait}");
    assert!(reader.wait().unwrap().success());
    drop(server);
}

// S-151
#[test]
fn other_client_is_named_as_the_cause() {
    let home = TestHome::new();
    home.write("export/a", "text");
    let _server = mounted(&home);
    let _second = SecondMount::mount_with_deadline(&home, "lease", DEADLINE);
    assert_eq!(home.read("other/a"), "text");
    assert_eq!(fs::metadata(home.path("mnt/a")).unwrap().permissions().mode() & 0o777, 0o644);
    let second = home.status_of("other")["process"].as_u64().unwrap() as i32;
    let frozen = Frozen::freeze(Pid::from_raw(second).unwrap());
    let mut changer: Command = home.command("chmod");
    let mut changer = changer.args(["600", "mnt/a"]).spawn().unwrap();
    wait_for("the wait", || !waits_of(&home, changer.id()).is_empty());
    drop(frozen);
    let wait = finished(&home, changer.id());
    assert_explained(&wait);
    assert_eq!(wait["operation"], "setattr");
    assert!(wait["causes_us"]["recall"].as_u64() >= Some(1), "{wait}");
    assert!(changer.wait().unwrap().success());
}
