//! A gate that runs as a program of its own, and a client of it.

use crate::proto;
use crate::proto::file_system_client::FileSystemClient;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::runtime::Runtime;
use tonic::Status;
use tonic::transport::Channel;
use wirefs_lab::port::ReservedPort;

/// The program.
pub(crate) const GATE: &str = env!("CARGO_BIN_EXE_wirefs-grpc");

static PLACES: AtomicU32 = AtomicU32::new(0);

/// A running gate over a directory, and a connected client; all end together.
pub(crate) struct Gate {
    dir: PathBuf,
    options: Vec<String>,
    child: Child,
    /// Held between two runs of the gate.
    _port: ReservedPort,
    /// IP and port.
    pub(crate) address: String,
    pub(crate) runtime: Runtime,
    pub(crate) channel: Channel,
}

pub(crate) type Client = FileSystemClient<Channel>;

impl Gate {
    pub(crate) fn start(options: &[&str]) -> Gate {
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("wirefs-grpc-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let options: Vec<_> = options.iter().map(|option| (*option).to_owned()).collect();
        let port = ReservedPort::unused().unwrap();
        let address = format!("127.0.0.1:{}", port.number());
        let child = run(&dir, &address, &options);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let endpoint = Channel::from_shared(format!("http://{address}")).unwrap();
        let channel = runtime.block_on(async { endpoint.connect_lazy() });
        Gate { dir, options, child, _port: port, address, runtime, channel }
    }

    /// Kills the gate, and starts another at the same address.
    pub(crate) fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn restart(&mut self) {
        self.child = run(&self.dir, &self.address, &self.options);
    }

    pub(crate) fn client(&self) -> Client {
        FileSystemClient::new(self.channel.clone()).max_decoding_message_size(2 << 20)
    }

    /// Stops the gate, so that it answers nothing, and waits until each of its threads has stopped.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
        let is_stopped = |task: PathBuf| {
            // A thread that has ended does not answer either.
            let Ok(stat) = std::fs::read_to_string(task.join("stat")) else { return true };
            stat.rsplit(')').next().unwrap().trim_start().starts_with('T')
        };
        let tasks = || std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        while !tasks().all(|task| is_stopped(task.unwrap().path())) {
            std::thread::yield_now();
        }
    }

    /// Lets a frozen gate go on.
    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Writes a new file as a local program, and waits until the gate has noticed all of it.
    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let size = contents.as_ref().len() as u64;
        std::fs::write(self.file(name), contents).unwrap();
        let mut client = self.client();
        self.runtime.block_on(async {
            while client.lookup(path(name)).await.ok().is_none_or(|found| found.into_inner().size != size) {
                tokio::task::yield_now().await;
            }
        });
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// Starts a gate, and waits until it serves.
fn run(dir: &Path, address: &str, options: &[String]) -> Child {
    let mut child = Command::new(GATE)
        .arg(dir)
        .args(["--grpc", address])
        .args(options)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.trim().ends_with(address), "{line}");
    child
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

pub(crate) fn path(path: &str) -> proto::Path {
    proto::Path { path: path.to_owned().into_bytes().into(), object: None }
}

/// Linux's number of a failure, from its metadata.
pub(crate) fn errno(status: &Status) -> u16 {
    status.metadata().get("wirefs-errno").unwrap().to_str().unwrap().parse().unwrap()
}
