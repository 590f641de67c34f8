//! A mount limited by the socket buffers of one connection reads over several, and continues when one of these is lost.
//!
//! ```text
//! export ── wirefs serve ── [server] ─ 20 ms, buffers of 64 KiB ─ [client] relay ── wirefs mount ── mnt, one
//! ```

use crate::home::{Finished, Server, TestHome, WIREFS, wait_for};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;
use wirefs_lab::{Host, Lab, LinkProfile};

const RTT: Duration = Duration::from_millis(20);
const BUFFER_BYTES: u64 = 64 << 10;
const FILE_BYTES: usize = 8 << 20;
/// The maximum number of files read until all connections are established.
const FILES_MAX: usize = 40;
/// All connections, including the first.
const CONNECTIONS: usize = 4;
/// The first data connection is cut after this many bytes, within a reply.
const CUT: usize = 1;
const CUT_AFTER_BYTES: u64 = 300_001;

/// One connection over the relay.
struct Line {
    ends: [TcpStream; 2],
    /// Bytes received from the server.
    received_bytes: u64,
    is_cut_off: bool,
}

/// Relays connections, and cuts one of them.
struct Relay {
    host: Host,
    at: SocketAddr,
    lines: Arc<Mutex<Vec<Line>>>,
    is_cut_off: Arc<AtomicBool>,
    accepts: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts a relay on `host` to this server.
    fn start(host: &Host, server: SocketAddr) -> Relay {
        let listener = host.run(|| TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
        let at = listener.local_addr().unwrap();
        let (lines, is_cut_off) = (Arc::<Mutex<Vec<Line>>>::default(), Arc::new(AtomicBool::new(false)));
        let relay = (host.clone(), Arc::clone(&lines), Arc::clone(&is_cut_off));
        let accepts = std::thread::spawn(move || {
            let (host, lines, is_cut_off) = relay;
            for near in listener.incoming().map(Result::unwrap) {
                if is_cut_off.load(Ordering::Relaxed) {
                    return;
                }
                let far = host.run(|| TcpStream::connect(server).unwrap()).unwrap();
                pass(&lines, near, far);
            }
        });
        Relay { host: host.clone(), at, lines, is_cut_off, accepts: Some(accepts) }
    }

    fn lines(&self) -> MutexGuard<'_, Vec<Line>> {
        self.lines.lock().unwrap()
    }

    fn made(&self) -> usize {
        self.lines().len()
    }

    fn has_cut(&self) -> bool {
        self.lines().get(CUT).is_some_and(|line| line.is_cut_off)
    }

    /// Returns the bytes received by each connection.
    fn received_bytes(&self) -> Vec<u64> {
        self.lines().iter().map(|line| line.received_bytes).collect()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_cut_off.store(true, Ordering::Relaxed);
        let at = self.at;
        let _woken = self.host.run(|| TcpStream::connect(at));
        let _ended = self.accepts.take().map(JoinHandle::join);
        for line in self.lines.lock().unwrap().iter() {
            end(&line.ends);
        }
    }
}

fn end(ends: &[TcpStream; 2]) {
    for stream in ends {
        let _ended = stream.shutdown(Shutdown::Both);
    }
}

/// Starts two threads for a connection; they end with it.
fn pass(lines: &Arc<Mutex<Vec<Line>>>, near: TcpStream, far: TcpStream) {
    let clone = |stream: &TcpStream| stream.try_clone().unwrap();
    let number = {
        let mut lines = lines.lock().unwrap();
        lines.push(Line { ends: [clone(&near), clone(&far)], received_bytes: 0, is_cut_off: false });
        lines.len() - 1
    };
    let (mut up, down) = ((clone(&near), clone(&far)), Arc::clone(lines));
    std::thread::spawn(move || {
        let _ended = std::io::copy(&mut up.0, &mut up.1);
        end(&[up.0, up.1]);
    });
    std::thread::spawn(move || relay_bytes(&down, number, (far, near)));
}

fn relay_bytes(lines: &Mutex<Vec<Line>>, number: usize, (mut from, mut to): (TcpStream, TcpStream)) {
    let mut buffer = [0; 16 << 10];
    loop {
        let taken = from.read(&mut buffer).unwrap_or(0);
        let is_cut = {
            let mut lines = lines.lock().unwrap();
            let is_enough = lines.len() >= CONNECTIONS;
            let line = &mut lines[number];
            line.received_bytes += taken as u64;
            number == CUT && is_enough && line.received_bytes >= CUT_AFTER_BYTES
        };
        if is_cut || taken == 0 || to.write_all(&buffer[..taken]).is_err() {
            end(&[from, to]);
            lines.lock().unwrap()[number].is_cut_off = true;
            return;
        }
    }
}

/// Returns `wirefs` on a host.
fn wirefs(home: &TestHome, host: &Host, arguments: &[&str]) -> Command {
    let mut command = host.command(WIREFS);
    home.at_home(&mut command);
    command.args(arguments);
    command
}

fn contents(number: usize) -> Vec<u8> {
    (0..FILE_BYTES).map(|at| ((at >> 12) * 31 + at + number * 7) as u8).collect()
}

/// Reads a file for the first time.
fn read(home: &TestHome, mountpoint: &str, number: usize) {
    let name = format!("file{number}");
    std::fs::write(home.path("export").join(&name), contents(number)).unwrap();
    let file = home.path(mountpoint).join(&name);
    wait_for("the new file", || file.metadata().is_ok_and(|found| found.len() == FILE_BYTES as u64));
    assert!(std::fs::read(&file).unwrap() == contents(number), "{name} differs");
}

fn gets(home: &TestHome) -> u64 {
    home.status()["requests"]["Get"].as_u64().unwrap()
}

/// S-82, S-83
#[test]
fn reads_over_several_connections_survive_the_loss_of_one() {
    let lab = Lab::new("connect").unwrap();
    let [server, client] = ["server", "client"].map(|name| lab.host(name).unwrap());
    let link = lab.link(&server, &client, LinkProfile::rtt(RTT)).unwrap();
    for host in [&server, &client] {
        host.limit_tcp_buffers(BUFFER_BYTES).unwrap();
    }
    let home = TestHome::new();
    home.write("authorized", &home.wirefs(&["identity"]).succeeds());
    let listen = format!("tls://{}:6440", link.address_a());
    let mut serve =
        wirefs(&home, &server, &["serve", "export", "--listen", &listen, "--authorized", "authorized"]);
    let serving = Server::start({
        serve.stdout(Stdio::piped()).stderr(Stdio::piped());
        serve
    });
    let relay = Relay::start(&client, (link.address_a(), 6440).into());
    let source = format!("tls://{}", relay.at);
    // Compressed, the contents would need one connection.
    let mount = ["mount", "--no-cache", "--no-compression", &source];
    Finished::of(wirefs(&home, &client, &mount).arg("mnt")).succeeds();
    assert_eq!((relay.made(), home.status()["connections"].as_u64()), (1, Some(1)));

    let mut number = 0;
    while !relay.has_cut() {
        assert!(number < FILES_MAX, "{} connections only: {:?}", relay.made(), relay.received_bytes());
        read(&home, "mnt", number);
        number += 1;
    }
    // No further connection is made for a while.
    wait_for("the loss", || home.status()["connections"] == CONNECTIONS as u64 - 1);
    assert_eq!(home.status()["connections_lost"], 0, "the first connection stands");
    let (before, requests) = (relay.received_bytes(), gets(&home));
    read(&home, "mnt", number);
    let after = relay.received_bytes();
    assert_eq!(before[CUT], after[CUT]);
    assert!((CUT + 1..CONNECTIONS).all(|line| before[line] < after[line]), "{before:?} {after:?}");
    let requests = gets(&home) - requests;
    assert!(requests <= (FILE_BYTES >> 17) as u64, "{requests} requests");
    home.wirefs(&["umount", "mnt"]).succeeds();

    // A limit of one connection is obeyed.
    let made = relay.made();
    Finished::of(wirefs(&home, &client, &mount).args(["mnt", "-o", "connections=1"])).succeeds();
    read(&home, "mnt", number + 1);
    assert_eq!((relay.made(), home.status()["connections"].as_u64()), (made + 1, Some(1)));
    home.wirefs(&["umount", "mnt"]).succeeds();
    drop((relay, serving));
}
