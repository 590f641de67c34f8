//! A named network namespace, as in `ip netns`.

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

/// The directory of the names, as used by `ip netns`.
const NAMES: &str = "/run/netns";
/// The prefix of the names of all labs; the process id follows.
const PREFIX: &str = "wirefs-lab-";
/// The maximum number of scanned names.
const NAMES_MAX: usize = 10_000;

/// Minimum, initial and maximum buffer bytes of TCP sockets: enough for one connection of 500 Mbit/s over 85 ms.
const TCP_BUFFERS: &str = "4096 131072 33554432";
/// The initial buffer of a socket, in bytes, unless the maximum is smaller.
const TCP_BUFFER_FIRST: u64 = 131_072;
/// Settings of a new namespace.
const SETTINGS: [(&str, &str); 4] = [
    ("ipv4/tcp_rmem", TCP_BUFFERS),
    ("ipv4/tcp_wmem", TCP_BUFFERS),
    // Router and neighbor discovery of IPv6 would be counted among the frames.
    ("ipv6/conf/all/disable_ipv6", "1"),
    ("ipv6/conf/default/disable_ipv6", "1"),
];

/// A network namespace; drop kills its processes and removes it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    file: Arc<File>,
}

impl Namespace {
    /// Creates a namespace named after this process, with its loopback device up.
    ///
    /// # Errors
    /// [`LabError::NotRoot`], or an error of `ip`.
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
                // A kernel without IPv6 has no such setting.
                if fs::exists(&path).unwrap_or(false) {
                    fs::write(&path, value).map_err(|error| LabError::io(format!("write {path}"), error))?;
                }
            }
            Ok(())
        })?
    }

    /// Limits the buffers of TCP sockets created from now on to `most` bytes, in both directions.
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

    /// Returns the name in `ip netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a command that runs inside; it shares the caller's mounts.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        sys::run_in_namespace(&mut command, Arc::clone(&self.file));
        command
    }

    /// Runs `work` on a thread inside; its sockets belong to the namespace. Panics propagate.
    ///
    /// # Errors
    /// [`LabError::Io`] if the thread cannot enter the namespace.
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

    /// Returns the processes inside, except this one.
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
            // The process may have ended already.
            kill_process(pid, Signal::KILL).ok();
        }
        // The name may have been removed by hand.
        program::run(Command::new("ip").args(["netns", "del", &self.name]), "iproute2", "").ok();
    }
}

/// Returns a command that runs inside the namespace `name` of `ip netns`; unlike with `ip netns exec`, it shares the
/// caller's mounts.
///
/// # Errors
/// [`LabError::Io`] if there is no such namespace.
pub fn command_inside(name: &str, program: impl AsRef<std::ffi::OsStr>) -> Result<Command, LabError> {
    let mut command = Command::new(program);
    sys::run_in_namespace(&mut command, Arc::new(open_name(name)?));
    Ok(command)
}

fn open_name(name: &str) -> Result<File, LabError> {
    let path = PathBuf::from(NAMES).join(name);
    File::open(&path).map_err(|error| LabError::io(format!("open {}", path.display()), error))
}

/// Removes the namespaces of labs whose process died without cleanup, and kills the processes in them.
pub fn remove_stale() {
    remove(|pid| !fs::exists(format!("/proc/{pid}")).unwrap_or(true));
}

/// Removes the namespaces of this process, and kills the processes in them, before an exit that drops no lab.
pub fn remove_own() {
    remove(|pid| pid == std::process::id());
}

fn remove(is_selected: impl Fn(u32) -> bool) {
    let entries = fs::read_dir(NAMES).into_iter().flatten().flatten();
    for entry in entries.take(NAMES_MAX) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if creator_pid(&name).is_some_and(&is_selected) {
            // Drop removes the namespace; one that cannot be opened is being removed by another process.
            drop(Namespace::open(&name));
        }
    }
}

/// Returns the process id in the name of a namespace.
fn creator_pid(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}
