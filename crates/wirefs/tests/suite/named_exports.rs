//! `wirefs serve --config`: several exports by name.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::home::{Server, TestHome, WIREFS};

const CONFIG: &str = "\
listen = [\"tls://127.0.0.1:0\"]

[[export]]
name = \"photos\"
path = \"photos\"

[[export]]
name = \"music\"
path = \"music\"
read-only = true
";

/// Starts a server of two exports.
fn serve(home: &TestHome) -> Server {
    // The tests may run with SIGHUP ignored, as by nohup, and programs inherit that.
    let mut command = home.command("env");
    command.args(["--default-signal=HUP", WIREFS]);
    home.write("photos/a", "photo\n");
    home.write("music/b", "song\n");
    home.write("serve.toml", CONFIG);
    command.env("NOTIFY_SOCKET", home.path("manager"));
    command.args(["serve", "--config", "serve.toml"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    Server::start(command)
}

fn allow(home: &TestHome, options: &[&str]) {
    let line = home.wirefs(&["identity"]).succeeds();
    let words: Vec<&str> = line.split_whitespace().collect();
    home.wirefs(&[&["allow"], options, &words].concat()).succeeds();
}

/// Returns the URL of an export.
fn url(server: &Server, name: &str) -> String {
    format!("{}/{name}", server.address().trim_end_matches('/'))
}

// S-153
#[test]
fn each_export_is_mounted_by_its_name_with_its_own_rights() {
    let home = TestHome::new();
    allow(&home, &[]);
    let server = serve(&home);
    home.wirefs(&["mount", &url(&server, "photos"), "mnt"]).succeeds();
    assert_eq!(home.read("mnt/a"), "photo\n");
    std::fs::write(home.path("mnt/new"), "new\n").unwrap();
    home.wirefs(&["umount", "mnt"]).succeeds();
    assert_eq!(home.read("photos/new"), "new\n");
    home.wirefs(&["mount", &url(&server, "music"), "mnt"]).succeeds();
    assert_eq!(home.read("mnt/b"), "song\n");
    let refused = std::fs::write(home.path("mnt/new"), "new\n").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnlyFilesystem);
    home.wirefs(&["umount", "mnt"]).succeeds();
}

// S-154
#[test]
fn key_of_one_export_gets_only_the_name_of_that_export() {
    let home = TestHome::new();
    allow(&home, &["--export", "photos"]);
    let server = serve(&home);
    for name in ["music", "absent"] {
        let error = home.wirefs(&["mount", &url(&server, name), "mnt"]).fails_with(&["/photos"]);
        assert!(!error.contains("/music,") && !error.contains(", /music"), "{error}");
    }
    home.wirefs(&["mount", &url(&server, "photos"), "mnt"]).succeeds();
    assert_eq!(home.read("mnt/a"), "photo\n");
    home.wirefs(&["umount", "mnt"]).succeeds();
}

// S-180
#[test]
fn names_of_a_client_begin_no_line_of_the_log() {
    let home = TestHome::new();
    allow(&home, &["--export", "photos"]);
    let server = serve(&home);
    home.wirefs(&["mount", &url(&server, "absent\nwirefs: forged"), "mnt"]).fails_with(&["/photos"]);
    server.kill(rustix::process::Signal::TERM);
    let log = server.end().stderr;
    assert!(log.contains("absent\\nwirefs: forged"), "{log}");
    assert!(!log.lines().any(|line| line.starts_with("wirefs: forged")), "{log}");
}

#[test]
fn error_in_the_configuration_names_its_line() {
    let home = TestHome::new();
    home.write("photos/a", "photo\n");
    let cases = [
        ("[[export]]\nname = \"a\"\npath = \"photos\"\nreadonly = true\n", ":4: "),
        ("[[export]]\nname = \"a\"\npath = \"absent\"\n", ":3: "),
        ("[[export]]\nname = \".a\"\npath = \"photos\"\n", ":2: "),
        (
            "[[export]]\nname = \"a\"\npath = \"photos\"\n[[export]]\nname = \"a\"\npath = \"photos\"\n",
            ":5: ",
        ),
        ("listen = [\n\"unix:///tmp/socket\"]\n", ":2: "),
        ("", "[[export]]"),
    ];
    for (text, expected) in cases {
        home.write("serve.toml", text);
        home.wirefs(&["serve", "--config", "serve.toml"]).fails_with(&["serve.toml:", expected, "next step"]);
    }
}

/// A service manager, to which the server reports.
struct Manager(UnixDatagram);

impl Manager {
    fn of(home: &TestHome) -> Manager {
        let socket = UnixDatagram::bind(home.path("manager")).unwrap();
        // Longer than any successful test.
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Manager(socket)
    }

    fn expect(&self, state: &str) {
        let mut buffer = [0; 64];
        let count = self.0.recv(&mut buffer).unwrap();
        assert_eq!(std::str::from_utf8(&buffer[..count]).unwrap(), state);
    }
}

// S-196
#[test]
fn server_reads_its_exports_again_and_reports_to_the_service_manager() {
    let home = TestHome::new();
    allow(&home, &[]);
    let manager = Manager::of(&home);
    let server = serve(&home);
    manager.expect("READY=1");
    home.wirefs(&["mount", &url(&server, "photos"), "mnt"]).succeeds();
    let reload = |text: &str| {
        home.write("serve.toml", text);
        server.kill(Signal::HUP);
        manager.expect("RELOADING=1");
        manager.expect("READY=1");
    };
    reload("[[export]]\nname = \"photos\"\n");
    assert_eq!(home.read("mnt/a"), "photo\n");
    home.write("films/c", "film\n");
    reload(&CONFIG.replace("music", "films"));
    home.write("mnt/new", "new\n");
    home.wirefs(&["sync", "mnt"]).succeeds();
    assert_eq!(home.status()["connections_lost"], 0, "an export that stays keeps its sessions");
    home.wirefs(&["umount", "mnt"]).succeeds();
    home.wirefs(&["mount", &url(&server, "films"), "mnt"]).succeeds();
    assert_eq!(home.read("mnt/c"), "film\n");
    home.wirefs(&["umount", "mnt"]).succeeds();
    home.wirefs(&["mount", &url(&server, "music"), "mnt"]).fails_with(&["/films"]);
    server.kill(Signal::TERM);
    manager.expect("STOPPING=1");
    let ended = server.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stderr.contains("serve.toml:1: ") && ended.stderr.contains("stay as they were"),
        "{ended:?}"
    );
}
