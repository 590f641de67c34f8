//! The settings of a mount, from the command line or from `-o` in the format of `/etc/fstab`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::ValueEnum as _;
use wirefs_cache::Mode;
use wirefs_mount::CONNECTIONS_MAX;

use crate::arguments::{self, Fsync, Symlinks, parse_rate, parse_size, parse_span};
use crate::failure::failure;

/// The default deadline of a call.
const DEADLINE: Duration = Duration::from_secs(10);
/// The default memory limit, in bytes.
const CACHE_BYTES_MAX: usize = 256 << 20;
/// The default disk cache limit, in bytes.
const DISK_BYTES_MAX: u64 = 1 << 30;
/// The maximum number of threads that read requests from the kernel.
const THREADS_MAX: usize = 64;

/// Options for mount(8) and systemd only.
const IGNORED_OPTIONS: [&str; 12] = [
    "defaults", "auto", "noauto", "user", "nouser", "users", "nousers", "owner", "group", "nofail",
    "_netdev", "comment",
];
/// Options that the kernel accepts for any file system.
const KERNEL_OPTIONS: [&str; 16] = [
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
/// Options named in the message about an unknown one.
const KNOWN_OPTIONS: &str = "ro rw suid nosuid dev nodev exec noexec allow_other default_permissions mode= deadline= hard cache= \
                     cache_size= no_cache no_prefetch no_compression journal no_journal fsync= symlinks= up= down= metrics= threads= connections= identity= known_hosts= ssh_command= port= uid= gid= fsname= remount, flags such as noatime, \
                     and _netdev noauto user nofail x-…";

/// The settings of a mount.
#[derive(Clone, Debug)]
pub(super) struct MountSettings {
    pub(super) mode: Mode,
    pub(super) deadline: Option<Duration>,
    pub(super) cache_bytes_max: usize,
    /// `None`: no disk cache.
    pub(super) disk_bytes_max: Option<u64>,
    /// Whether data is prefetched.
    prefetches: bool,
    /// Whether messages are compressed when the line is slow.
    pub(super) compresses: bool,
    /// Whether changes go to a journal on disk and are answered before the server has them; `None`: if the mode
    /// supports it.
    journal: Option<bool>,
    /// The durability that `fsync` waits for.
    pub(super) fsync: Fsync,
    /// The links that programs may follow; `None`: as the source is trusted.
    pub(super) symlinks: Option<Symlinks>,
    pub(super) threads: usize,
    /// The maximum number of connections to the server.
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
    /// The limits of sending and receiving, in bytes per second.
    pub(super) up: Option<u64>,
    pub(super) down: Option<u64>,
    /// The address of metrics and the page.
    pub(super) metrics: Option<SocketAddr>,
    /// Flags for the kernel.
    pub(super) extra: Vec<String>,
}

impl Default for MountSettings {
    fn default() -> MountSettings {
        MountSettings {
            mode: Mode::default(),
            deadline: Some(DEADLINE),
            cache_bytes_max: CACHE_BYTES_MAX,
            disk_bytes_max: Some(DISK_BYTES_MAX),
            prefetches: true,
            compresses: true,
            journal: None,
            fsync: Fsync::default(),
            symlinks: None,
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
            up: None,
            down: None,
            metrics: None,
            extra: Vec::new(),
        }
    }
}

/// Returns the flags of a remount; `None` for a new mount.
///
/// # Errors
/// As [`MountSettings::of`].
pub(super) fn remounted(arguments: &arguments::Mount) -> Result<Option<Vec<String>>> {
    let options: Vec<String> = arguments.options.iter().flat_map(|list| split(list)).collect();
    if !options.iter().any(|option| option == "remount") {
        return Ok(None);
    }
    let mut settings = MountSettings::default();
    // mount(8) repeats options that the kernel shows.
    let shown =
        |option: &&String| ["user_id=", "group_id=", "max_read="].iter().any(|name| option.starts_with(name));
    options.iter().filter(|option| !shown(option)).try_for_each(|option| settings.take(option))?;
    Ok(Some(options))
}

impl MountSettings {
    /// Applies the defaults, with the default mode of the source, then `-o` in order, then separate arguments.
    ///
    /// # Errors
    /// Fails if an option is unknown or its value is invalid; the error names the known options.
    pub(super) fn of(arguments: &arguments::Mount, mode: Mode) -> Result<MountSettings> {
        let mut settings = MountSettings { mode, ..MountSettings::default() };
        for option in arguments.options.iter().flat_map(|list| split(list)) {
            settings.take(&option)?;
        }
        settings.mode = arguments.mode.unwrap_or(settings.mode);
        settings.deadline = arguments.deadline.or(settings.deadline).filter(|_| !arguments.hard);
        settings.cache_bytes_max = arguments.cache.unwrap_or(settings.cache_bytes_max);
        let disk = arguments.cache_size.map(|bytes| bytes as u64).or(settings.disk_bytes_max);
        settings.disk_bytes_max = disk.filter(|_| !arguments.no_cache);
        settings.compresses &= !arguments.no_compression;
        if arguments.no_prefetch || !settings.prefetches {
            settings.mode.fetch = settings.mode.fetch.without_prefetch();
        }
        let journal = arguments.journal.then_some(true).or(arguments.no_journal.then_some(false));
        settings.journal = journal.or(settings.journal);
        if settings.journal == Some(true) && !settings.mode.allows_optimism() {
            return Err(failure(
                "--journal: in this mode each change waits for the server, so a journal has no use",
                "mount in mode lease, or without --journal",
            ));
        }
        settings.fsync = arguments.fsync.unwrap_or(settings.fsync);
        if settings.fsync == Fsync::Journal && !settings.has_journal() {
            return Err(failure(
                "--fsync=journal: this mount has no journal",
                "mount in mode lease, and without --no-journal",
            ));
        }
        settings.symlinks = arguments.symlinks.or(settings.symlinks);
        settings.up = arguments.up.or(settings.up);
        settings.down = arguments.down.or(settings.down);
        settings.metrics = arguments.metrics.or(settings.metrics);
        settings.allow_other |= arguments.allow_other;
        Ok(settings)
    }

    /// Returns whether changes go to a journal on disk.
    pub(super) fn has_journal(&self) -> bool {
        self.journal.unwrap_or(true) && self.mode.allows_optimism()
    }

    fn take(&mut self, option: &str) -> Result<()> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        if name.starts_with("x-") || name.starts_with("X-") || IGNORED_OPTIONS.contains(&name) {
            return Ok(());
        }
        let known = match value {
            None => self.take_flag(name),
            Some(value) => self.take_value(name, value).map_err(|wrong| anyhow!("-o {option}: {wrong}"))?,
        };
        if known {
            return Ok(());
        }
        Err(match (value, MountSettings::default().take_value(name, "")) {
            (None, Err(_)) => failure(format!("-o {name} needs a value"), format!("write -o {name}=VALUE")),
            (_, Ok(_) | Err(_)) => failure(
                format!("unknown mount option `{option}`"),
                format!("the options are: {KNOWN_OPTIONS}"),
            ),
        })
    }

    /// Returns whether the option exists.
    fn take_flag(&mut self, name: &str) -> bool {
        match name {
            // Handled already.
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
            "no_compression" => self.compresses = false,
            "journal" => self.journal = Some(true),
            "no_journal" => self.journal = Some(false),
            _ if KERNEL_OPTIONS.contains(&name) => self.extra.push(name.to_owned()),
            _ => return false,
        }
        true
    }

    /// Returns whether the option exists; fails if its value is invalid.
    fn take_value(&mut self, name: &str, value: &str) -> Result<bool, String> {
        match name {
            "mode" => self.mode = Mode::parse(value)?,
            "deadline" => self.deadline = Some(parse_span(value)?),
            "cache" => self.cache_bytes_max = parse_size(value)?,
            "fsync" => self.fsync = Fsync::from_str(value, false)?,
            "symlinks" => self.symlinks = Some(Symlinks::from_str(value, false)?),
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
            "metrics" => {
                self.metrics = Some(value.parse().map_err(|_| "write an address such as 127.0.0.1:9440")?)
            }
            "up" => self.up = Some(parse_rate(value)?),
            "down" => self.down = Some(parse_rate(value)?),
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

/// Splits options at commas; `\,` is a comma, `\\` a backslash.
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

/// The background process has another working directory.
fn absolute(value: &str) -> Result<PathBuf, String> {
    std::path::absolute(filled(value)?).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
