//! A network namespace with a name, as `ip netns` knows it.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::{fs, panic, thread};

use rustix::fd::AsFd;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::LabError;
use crate::{program, sys};

/// Where `ip netns` keeps the names.
const NAMES: &str = "/run/netns";
/// What the names of all labs begin with; the process id follows.
const PREFIX: &str = "wirefs-lab-";
/// The most entries of a name directory that are looked at.
const NAMES_MAX: usize = 10_000;

/// What a host of today has, so that one TCP connection fills 500 Mbit/s over 85 ms: at least, at first, at most, bytes.
const TCP_BUFFERS: &str = "4096 131072 33554432";
/// What a socket's buffer has at first, in bytes, unless it may not have so much.
const TCP_BUFFER_FIRST: u64 = 131_072;
/// Settings of a new namespace.
const SETTINGS: [(&str, &str); 4] = [
    ("ipv4/tcp_rmem", TCP_BUFFERS),
    ("ipv4/tcp_wmem", TCP_BUFFERS),
    // Router and neighbour discovery of IPv6 would show up among the counted frames.
    ("ipv6/conf/all/disable_ipv6", "1"),
    ("ipv6/conf/default/disable_ipv6", "1"),
];

/// A network namespace that goes away, with every process in it, when it is dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    file: Arc<File>,
}

impl Namespace {
    /// Makes a namespace named after this process, with its loopback up.
    ///
    /// # Errors
    /// [`LabError::NotRoot`], or those of running `ip`.
    pub fn new(name: &str) -> Result<Namespace, LabError> {
        if !rustix::process::geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        let name = format!("{PREFIX}{}-{name}", std::process::id());
        program::run(Command::new("ip").args(["netns", "add", &name]), "iproute2", "")?;
        let namespace = Namespace::open(&name)?;
        namespace.set_up()?;
        Ok(namespace)
    }

    fn open(name: &str) -> Result<Namespace, LabError> {
        Ok(Namespace { name: name.to_owned(), file: Arc::new(open_name(name)?) })
    }

    fn set_up(&self) -> Result<(), LabError> {
        program::run(Command::new("ip").args(["-n", &self.name, "link", "set", "lo", "up"]), "iproute2", "")?;
        self.run(|| {
            for (setting, value) in SETTINGS {
                let path = format!("/proc/sys/net/{setting}");
                // A kernel built without IPv6 has nothing to switch off.
                if fs::exists(&path).unwrap_or(false) {
                    fs::write(&path, value).map_err(|error| LabError::io(format!("write {path}"), error))?;
                }
            }
            Ok(())
        })?
    }

    /// Lets TCP sockets that are made in it from now on have buffers of at most `most` bytes, in both directions.
    ///
    /// # Errors
    /// [`LabError::Io`].
    pub fn limit_tcp_buffers(&self, most: u64) -> Result<(), LabError> {
        let first = most.min(TCP_BUFFER_FIRST);
        let value = format!("4096 {first} {most}");
        self.run(|| {
            for path in ["/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"] {
                fs::write(path, &value).map_err(|error| LabError::io(format!("write {path}"), error))?;
            }
            Ok(())
        })?
    }

    /// The name by which `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that will run inside; its mounts are those of the caller.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        sys::run_in_namespace(&mut command, Arc::clone(&self.file));
        command
    }

    /// Runs `work` on a thread inside; sockets that it makes live there. A panic passes through.
    ///
    /// # Errors
    /// [`LabError::Io`] when the thread cannot enter the namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
                    .map_err(|error| LabError::io(format!("enter namespace {}", self.name), error))?;
                Ok(work())
            });
            inside.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
        })
    }

    /// The processes inside, this one excepted.
    fn processes(&self) -> Vec<Pid> {
        let Ok(own) = self.file.metadata() else {
            return Vec::new();
        };
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter(|&pid| u32::try_from(pid) != Ok(std::process::id()))
            .filter(|pid| {
                fs::metadata(format!("/proc/{pid}/ns/net")).is_ok_and(|other| other.ino() == own.ino())
            })
            .filter_map(Pid::from_raw)
            .collect()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        for pid in self.processes() {
            // One that ended in the meantime is what we want.
            kill_process(pid, Signal::KILL).ok();
        }
        // The name may be gone already when somebody tidied up by hand; nothing is left to do then.
        program::run(Command::new("ip").args(["netns", "del", &self.name]), "iproute2", "").ok();
    }
}

/// A command that will run inside the namespace that `ip netns` knows by `name`; its mounts are those of the caller
/// (unlike under `ip netns exec`).
///
/// # Errors
/// [`LabError::Io`] when there is no such namespace.
pub fn command_inside(name: &str, program: impl AsRef<std::ffi::OsStr>) -> Result<Command, LabError> {
    let mut command = Command::new(program);
    sys::run_in_namespace(&mut command, Arc::new(open_name(name)?));
    Ok(command)
}

fn open_name(name: &str) -> Result<File, LabError> {
    let path = PathBuf::from(NAMES).join(name);
    File::open(&path).map_err(|error| LabError::io(format!("open {}", path.display()), error))
}

/// Removes the namespaces of labs whose process is gone without tidying up, and what still runs in them.
pub fn remove_stale() {
    remove(|pid| !fs::exists(format!("/proc/{pid}")).unwrap_or(true));
}

/// Removes the namespaces of this process, and what still runs in them, because it is about to end without dropping
/// its labs.
pub fn remove_own() {
    remove(|pid| pid == std::process::id());
}

fn remove(is_meant: impl Fn(u32) -> bool) {
    let entries = fs::read_dir(NAMES).into_iter().flatten().flatten();
    for entry in entries.take(NAMES_MAX) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if maker(&name).is_some_and(&is_meant) {
            // Dropping it removes it; one that cannot be opened belongs to somebody who is removing it now.
            drop(Namespace::open(&name));
        }
    }
}

/// The process that made the namespace of this name.
fn maker(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}
