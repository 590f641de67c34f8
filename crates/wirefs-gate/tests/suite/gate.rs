//! A gate that runs as a program of its own, over a directory that is removed with it.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

static PLACES: AtomicU32 = AtomicU32::new(0);

/// A directory of one test.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> Place {
        let number = PLACES.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("wirefs-gate-{}-{number}", std::process::id()));
        std::fs::create_dir_all(dir.join("tree")).unwrap();
        Place(dir)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A path within the served directory.
    pub(crate) fn tree(&self, name: &str) -> PathBuf {
        self.path("tree").join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running gate; killed when dropped.
pub(crate) struct Gate {
    child: Child,
    pub(crate) socket: PathBuf,
}

impl Gate {
    /// Serves the place's directory.
    pub(crate) fn serve(place: &Place, options: &[&str]) -> Gate {
        Gate::serve_source(place, place.path("tree").as_os_str().to_str().unwrap(), options)
    }

    pub(crate) fn serve_source(place: &Place, source: &str, options: &[&str]) -> Gate {
        let socket = place.path("nine");
        let mut child = Gate::command(source, &socket).args(options).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("serving "), "{line}");
        Gate { child, socket }
    }

    pub(crate) fn command(source: &str, socket: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wirefs-gate"));
        command.arg(source).arg("--9p").arg(format!("unix:{}", socket.display()));
        command
    }

    pub(crate) fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.socket).unwrap()
    }

    /// Ends it as a user does; returns whether it succeeded.
    pub(crate) fn end(mut self) -> bool {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().success()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads until the other side closes; true if that is all that came.
pub(crate) fn is_closed(stream: &mut UnixStream) -> bool {
    matches!(stream.read(&mut [0; 64]), Ok(0) | Err(_))
}
