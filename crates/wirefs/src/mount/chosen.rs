//! What the user chose, on the command line or with `-o` as `/etc/fstab` writes it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::ValueEnum as _;
use wirefs_cache::Mode;
use wirefs_driver::mount::CONNECTIONS_MAX;

use crate::arguments::{self, Fsync, parse_size, parse_span};
use crate::failure::failure;

/// How long a call waits for a silent server unless the user says otherwise.
const DEADLINE: Duration = Duration::from_secs(10);
/// Memory for file contents unless the user says otherwise, in bytes.
const CACHE_BYTES_MAX: usize = 256 << 20;
/// Disk space for file contents unless the user says otherwise, in bytes.
const DISK_BYTES_MAX: u64 = 1 << 30;
/// Threads that read requests from the kernel, at most.
const THREADS_MAX: usize = 64;

/// Options that only mount(8) and systemd read.
const FOR_OTHERS: [&str; 12] = [
    "defaults", "auto", "noauto", "user", "nouser", "users", "nousers", "owner", "group", "nofail",
    "_netdev", "comment",
];
/// Options that the kernel takes for any file system.
const FOR_KERNEL: [&str; 16] = [
    "exec",
    "noexec",
    "sync",
    "async",
    "dirsync",
    "atime",
    "noatime",
    "diratime",
    "nodiratime",
    "relatime",
    "norelatime",
    "strictatime",
    "lazytime",
    "nolazytime",
    "nosymfollow",
    "blkdev",
];
/// What is told of an option that nobody knows.
const KNOWN: &str = "ro rw suid nosuid dev nodev exec noexec allow_other default_permissions mode= deadline= hard cache= \
                     cache_size= no_cache no_prefetch journal no_journal fsync= threads= connections= identity= known_hosts= ssh_command= port= uid= gid= fsname= remount, flags such as noatime, \
                     and _netdev noauto user nofail x-…";

/// What the user chose.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) mode: Mode,
    pub(super) deadline: Option<Duration>,
    pub(super) cache_bytes_max: usize,
    /// `None`: nothing is kept on disk.
    pub(super) disk_bytes_max: Option<u64>,
    /// Whether anything is fetched that nobody has asked for.
    prefetches: bool,
    /// Whether changes go to a journal on disk, so that they are done before the server has them; `None`: where the mode can have one.
    journal: Option<bool>,
    /// What `fsync` waits for.
    pub(super) fsync: Fsync,
    pub(super) threads: usize,
    /// Connections to the server, at most.
    pub(super) connections: usize,
    pub(super) read_only: bool,
    pub(super) suid: bool,
    pub(super) dev: bool,
    pub(super) allow_other: bool,
    pub(super) default_permissions: bool,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) fs_name: Option<String>,
    /// The directory of our own key.
    pub(super) identity: Option<PathBuf>,
    pub(super) known_hosts: Option<PathBuf>,
    pub(super) ssh_command: Option<String>,
    /// The port of ssh.
    pub(super) port: Option<u16>,
    /// Flags for the kernel.
    pub(super) extra: Vec<String>,
}

impl Default for Chosen {
    fn default() -> Chosen {
        Chosen {
            mode: Mode::default(),
            deadline: Some(DEADLINE),
            cache_bytes_max: CACHE_BYTES_MAX,
            disk_bytes_max: Some(DISK_BYTES_MAX),
            prefetches: true,
            journal: None,
            fsync: Fsync::default(),
            threads: std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8),
            connections: CONNECTIONS_MAX,
            read_only: false,
            suid: false,
            dev: false,
            allow_other: false,
            default_permissions: false,
            uid: None,
            gid: None,
            fs_name: None,
            identity: None,
            known_hosts: None,
            ssh_command: None,
            port: None,
            extra: Vec::new(),
        }
    }
}

/// The flags that a mount which stands is to have; `None`: a mount is to be made.
///
/// # Errors
/// As [`Chosen::of`].
pub(super) fn remounted(arguments: &arguments::Mount) -> Result<Option<Vec<String>>> {
    let options: Vec<String> = arguments.options.iter().flat_map(|list| split(list)).collect();
    if !options.iter().any(|option| option == "remount") {
        return Ok(None);
    }
    let mut chosen = Chosen::default();
    // mount(8) repeats what the kernel shows of the mount.
    let shown =
        |option: &&String| ["user_id=", "group_id=", "max_read="].iter().any(|name| option.starts_with(name));
    options.iter().filter(|option| !shown(option)).try_for_each(|option| chosen.take(option))?;
    Ok(Some(options))
}

impl Chosen {
    /// The defaults, then `-o` in its order, then the options of their own.
    ///
    /// # Errors
    /// An option is unknown or its value is wrong; the text says which are known.
    pub(super) fn of(arguments: &arguments::Mount) -> Result<Chosen> {
        let mut chosen = Chosen::default();
        for option in arguments.options.iter().flat_map(|list| split(list)) {
            chosen.take(&option)?;
        }
        chosen.mode = arguments.mode.unwrap_or(chosen.mode);
        chosen.deadline = arguments.deadline.or(chosen.deadline).filter(|_| !arguments.hard);
        chosen.cache_bytes_max = arguments.cache.unwrap_or(chosen.cache_bytes_max);
        let disk = arguments.cache_size.map(|bytes| bytes as u64).or(chosen.disk_bytes_max);
        chosen.disk_bytes_max = disk.filter(|_| !arguments.no_cache);
        if arguments.no_prefetch || !chosen.prefetches {
            chosen.mode.fetch = chosen.mode.fetch.without_prefetch();
        }
        let journal = arguments.journal.then_some(true).or(arguments.no_journal.then_some(false));
        chosen.journal = journal.or(chosen.journal);
        if chosen.journal == Some(true) && !chosen.mode.allows_optimism() {
            return Err(failure(
                "--journal: in this mode each change waits for the server, so there is nothing to keep",
                "mount in mode lease, or without --journal",
            ));
        }
        chosen.fsync = arguments.fsync.unwrap_or(chosen.fsync);
        if chosen.fsync == Fsync::Journal && !chosen.keeps_journal() {
            return Err(failure(
                "--fsync=journal: no journal is kept",
                "mount in mode lease, and without --no-journal",
            ));
        }
        chosen.allow_other |= arguments.allow_other;
        Ok(chosen)
    }

    /// Whether changes go to a journal on disk.
    pub(super) fn keeps_journal(&self) -> bool {
        self.journal.unwrap_or(true) && self.mode.allows_optimism()
    }

    fn take(&mut self, option: &str) -> Result<()> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        if name.starts_with("x-") || name.starts_with("X-") || FOR_OTHERS.contains(&name) {
            return Ok(());
        }
        let known = match value {
            None => self.take_flag(name),
            Some(value) => self.take_value(name, value).map_err(|wrong| anyhow!("-o {option}: {wrong}"))?,
        };
        if known {
            return Ok(());
        }
        Err(match (value, Chosen::default().take_value(name, "")) {
            (None, Err(_)) => failure(format!("-o {name} needs a value"), format!("write -o {name}=VALUE")),
            (_, Ok(_) | Err(_)) => {
                failure(format!("there is no mount option `{option}`"), format!("the options are: {KNOWN}"))
            }
        })
    }

    /// Whether there is such an option.
    fn take_flag(&mut self, name: &str) -> bool {
        match name {
            // What it asks for has been done where it counts.
            "" | "remount" => {}
            "ro" => self.read_only = true,
            "rw" => self.read_only = false,
            "suid" => self.suid = true,
            "nosuid" => self.suid = false,
            "dev" => self.dev = true,
            "nodev" => self.dev = false,
            "allow_other" => self.allow_other = true,
            "default_permissions" => self.default_permissions = true,
            "hard" => self.deadline = None,
            "no_cache" => self.disk_bytes_max = None,
            "no_prefetch" => self.prefetches = false,
            "journal" => self.journal = Some(true),
            "no_journal" => self.journal = Some(false),
            _ if FOR_KERNEL.contains(&name) => self.extra.push(name.to_owned()),
            _ => return false,
        }
        true
    }

    /// Whether there is such an option; an error where its value is wrong.
    fn take_value(&mut self, name: &str, value: &str) -> Result<bool, String> {
        match name {
            "mode" => self.mode = Mode::parse(value)?,
            "deadline" => self.deadline = Some(parse_span(value)?),
            "cache" => self.cache_bytes_max = parse_size(value)?,
            "fsync" => self.fsync = Fsync::from_str(value, false)?,
            "cache_size" => self.disk_bytes_max = Some(parse_size(value)? as u64),
            "threads" => {
                self.threads = number::<usize>(value)?;
                if !(1..=THREADS_MAX).contains(&self.threads) {
                    return Err(format!("write a number from 1 to {THREADS_MAX}"));
                }
            }
            "connections" => {
                self.connections = number::<usize>(value)?;
                if !(1..=CONNECTIONS_MAX).contains(&self.connections) {
                    return Err(format!("write a number from 1 to {CONNECTIONS_MAX}"));
                }
            }
            "uid" => self.uid = Some(number(value)?),
            "gid" => self.gid = Some(number(value)?),
            "port" => self.port = Some(number(value)?),
            "fsname" => self.fs_name = Some(filled(value)?.to_owned()),
            "identity" => self.identity = Some(absolute(value)?),
            "known_hosts" => self.known_hosts = Some(absolute(value)?),
            "ssh_command" => self.ssh_command = Some(filled(value)?.to_owned()),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Parts options at commas; `\,` is a comma, `\\` a backslash.
fn split(list: &str) -> Vec<String> {
    let mut options = vec![String::new()];
    let mut chars = list.chars().peekable();
    while let Some(c) = chars.next() {
        let next = match (c, chars.peek()) {
            ('\\', Some(',' | '\\')) => chars.next(),
            (',', _) => None,
            (c, _) => Some(c),
        };
        match (next, options.last_mut()) {
            (Some(c), Some(last)) => last.push(c),
            (_, _) => options.push(String::new()),
        }
    }
    options
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("`{value}` is not a number that fits"))
}

fn filled(value: &str) -> Result<&str, String> {
    if value.is_empty() { Err("the value is empty".to_owned()) } else { Ok(value) }
}

/// The process in the background works in another directory.
fn absolute(value: &str) -> Result<PathBuf, String> {
    std::path::absolute(filled(value)?).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
