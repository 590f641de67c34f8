//! The command line.

mod echo;
mod find_servers;
mod fsync;
mod keys;
mod limits;
mod mode;
mod node;
mod quarantine;
mod symlinks;

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use wirefs_cache::Mode;
use wirefs_carrier::Address;
use wirefs_hostfs::HostOptions;

pub(crate) use echo::{Echo, EchoCommand, EchoHost, EchoMount, EchoStatus, Keep};
pub(crate) use find_servers::FindServers;
pub(crate) use fsync::Fsync;
pub(crate) use keys::{Allow, Keys, Revoke};
pub(crate) use limits::{AtMount, LimitChange, Set, parse_rate};
use mode::ModeParser;
pub(crate) use node::{JoinCode, JoinPlace, Node, NodeCommand, NodeInvite, NodeList, NodeMode, NodeUp};
pub(crate) use quarantine::{Quarantine, QuarantineAction};
pub(crate) use symlinks::Symlinks;

const ABOUT: &str = "Mounts directories of other machines, over any network";

const EXAMPLES: &str = "\
Examples:
  wirefs mount host:project ~/project        mount a directory of another machine over ssh
  wirefs mount tls://nas:6440/photos ~/p     mount over TLS from a running `wirefs serve`
  wirefs serve ~/shared                      export a directory on port 6440
  wirefs status                              show all mounts
  wirefs umount ~/project                    unmount
  wirefs doctor                              check this machine, and say how to fix it";

const SERVE_EXAMPLES: &str = "\
Examples:
  wirefs serve ~/shared
  wirefs serve /srv/data --read-only --listen tls://0.0.0.0:7000 --authorized /etc/wirefs/keys
  wirefs serve . --listen unix:///tmp/here.sock
  wirefs serve --config /etc/wirefs/serve.toml

The authorized-keys file must contain the key of each client of a tls://
address. `wirefs identity` prints a client's key; `wirefs allow` adds it. A unix socket admits the user
who runs the server, and root. tcp+plain:// admits everyone who can connect.
For ssh, start nothing: `wirefs mount host:dir mnt` starts a server on the host.";

const MOUNT_EXAMPLES: &str = "\
SOURCE is one of
  [user@]host:path            over the system's ssh; path is relative to the home directory
  ssh://[user@]host[:port]/path  the same; /~/path is in the home directory
  sftp://[user@]host[:port]/path  over SFTP, for hosts that run no wirefs; mode window unless named
  tls://host[:port]/path      a `wirefs serve`, encrypted; default port 6440
  unix:///path/of/socket      a `wirefs serve` on this machine
  ether://MAC@card[,card]/path  a `wirefs serve` on the same Ethernet, encrypted, without IP
  9p://host[:port]/tree       a server of 9P2000 or 9P2000.L; mode strict unless named; 9p+unix:///socket
  grpc://host[:port]/path     a `wirefs-grpc`; mode window unless named; grpcs:// with TLS; needs wirefs-grpc here
  blocks:///DIR               a block tree in a directory of this machine
  blocks+memory:              a block tree in memory, lost at unmount
  tcp+plain://host:port/path  neither encrypted nor authenticated

Examples:
  wirefs mount host:project ~/project
  wirefs mount me@host: /mnt/home -o ro,ssh_command=\"ssh -p 2222\"
  wirefs mount tls://nas/photos ~/photos --mode window=5s
In /etc/fstab:
  tls://nas/photos  /mnt/photos  fuse.wirefs  noauto,user,_netdev  0 0

Options of -o
  ro rw suid nosuid dev nodev exec noexec allow_other default_permissions hard
  mode=MODE deadline=SPAN cache=SIZE cache_size=SIZE no_cache no_prefetch journal no_journal fsync=WHERE
  no_compression up=RATE down=RATE metrics=ADDRESS threads=N connections=N uid=N gid=N fsname=NAME
  identity=DIR known_hosts=FILE ssh_command=COMMAND port=N (of ssh)
  flags of mount(8) such as noatime; options for mount(8) and systemd are ignored
  (_netdev noauto user nofail x-…). Write a comma inside a value as \\,";

const RECOVER_EXAMPLES: &str = "\
Examples:
  wirefs recover --list
  wirefs recover tls://nas/photos
  wirefs recover /net/linus2           unsent changes of this machine to the node linus2

The next mount of the same source does the same first. A change that the server
rejects goes to the quarantine, with the reason: see `wirefs quarantine`.";

const CHECKPOINT_EXAMPLES: &str = "\
Examples:
  wirefs checkpoint create ~/tree before
  wirefs checkpoint diff ~/tree before
  wirefs checkpoint restore ~/tree before

A checkpoint can be read at .checkpoints/NAME below the mountpoint. Creating a
file __checkpoint_NAME anywhere in the tree creates a checkpoint, too. Removing
that file restores the checkpoint.";

/// Mounts directories of other machines, over any network.
#[derive(Debug, Parser)]
#[command(name = "wirefs", version, about = ABOUT, after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Export a directory to other machines
    Serve(Serve),
    /// List the servers of this network segment that announce themselves
    FindServers(FindServers),
    /// Mount a directory of another machine
    Mount(Mount),
    /// Mount a PingFS: its blocks exist only in ping packets in flight
    Echo(Echo),
    /// Join the nodes of the LAN, whose shared directories appear at /net/NODE
    Node(Node),
    /// Send pending writes to the server, then unmount
    #[command(visible_alias = "unmount")]
    Umount(Umount),
    /// Show the state of mounts
    Status(Status),
    /// Show mounts, operations and waits, live in the terminal
    Top(Top),
    /// Say what programs wait for, and waited for
    Why(Why),
    /// Wait until all written data is on the server's disk
    Sync(Sync),
    /// Change the rate limits of a mount
    Set(Set),
    /// Close the connections of a mount until `wirefs resume`
    Pause(AtMount),
    /// Connect a paused mount again
    Resume(AtMount),
    /// Connect a mount over ssh again, and ask for its password
    Reconnect(AtMount),
    /// Send the unsent changes of a killed mount to its server
    Recover(Recover),
    /// List, extract and drop changes that servers rejected
    Quarantine(Quarantine),
    /// Manage snapshots of a block tree
    Checkpoint(Checkpoint),
    /// Check this machine, and say how to fix each problem
    Doctor(Doctor),
    /// Let a client's key connect to this user's servers
    Allow(Allow),
    /// List the keys that may connect to this user's servers
    Keys(Keys),
    /// Refuse a key from now on, and end its sessions
    Revoke(Revoke),
    /// Print this user's key as a line for a server's authorized-keys file
    Identity,
    /// Print completions for a shell
    #[command(
        after_help = "Example:\n  wirefs completions bash > ~/.local/share/bash-completion/completions/wirefs"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write all pages
    Man {
        /// Write one page for each command into this directory
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct Serve {
    /// The directory to export, or a block tree (blocks:///DIR, blocks+memory:), or a 9P server's tree (9p://host:port/tree)
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "config")]
    pub(crate) directory: Option<PathBuf>,
    /// Serve the named exports of this TOML file, each as tls://host/NAME
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["directory", "listen", "read_only", "exclusive", "authorized", "announce", "metrics", "stdio", "suid", "dev", "cross_mounts"]
    )]
    pub(crate) config: Option<PathBuf>,
    /// The address to listen on: tls://host:port, unix:///path/of/socket, ether://card or tcp+plain://host:port [default: tls://[::]:6440]
    #[arg(long, value_name = "URL")]
    pub(crate) listen: Vec<Address>,
    /// Reject all changes
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Assume that no other program changes this directory, and do not watch it
    #[arg(long)]
    pub(crate) exclusive: bool,
    /// The keys that may connect through TLS [default: ~/.config/wirefs/authorized_keys]
    #[arg(long, value_name = "FILE")]
    pub(crate) authorized: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) rights: ExportRights,
    /// Answer `wirefs find-servers` on the same network segment, with this machine's name and key
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) announce: bool,
    /// Serve metrics and a live page over HTTP on this address, such as 127.0.0.1:9440
    #[arg(long, value_name = "ADDRESS", conflicts_with = "stdio")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Serve one client on standard input and output, for ssh
    #[arg(long, conflicts_with_all = ["listen", "authorized"])]
    pub(crate) stdio: bool,
}

/// The rights of clients that come over a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct ExportRights {
    /// Let clients set set-user-id and set-group-id bits and file capabilities
    #[arg(long)]
    pub(crate) suid: bool,
    /// Let clients create device files
    #[arg(long)]
    pub(crate) dev: bool,
    /// Serve file systems that are mounted below this directory, too
    #[arg(long)]
    pub(crate) cross_mounts: bool,
}

impl ExportRights {
    /// All rights: for clients that have the rights of this process anyway.
    pub(crate) const ALL: ExportRights = ExportRights { suid: true, dev: true, cross_mounts: true };

    /// Returns these rights as options of an export.
    pub(crate) fn host_options(self) -> HostOptions {
        HostOptions {
            cross_mounts: self.cross_mounts,
            allows_set_id: self.suid,
            allows_devices: self.dev,
            ..HostOptions::default()
        }
    }
}

impl Serve {
    /// Returns the rights of clients. One that comes through a pipe or a unix socket of this user could do all of it
    /// without this server.
    pub(crate) fn granted_rights(&self) -> ExportRights {
        let is_local = |address: &Address| matches!(address, Address::Unix(_));
        let is_only_local = !self.listen.is_empty() && self.listen.iter().all(is_local);
        if self.stdio || is_only_local { ExportRights::ALL } else { self.rights }
    }

    /// Returns the directory to export; empty with a configuration file.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.as_deref().unwrap_or(Path::new(""))
    }
}

#[derive(Debug, Args)]
#[command(after_help = MOUNT_EXAMPLES)]
pub(crate) struct Mount {
    /// The source: see below
    #[arg(value_name = "SOURCE")]
    pub(crate) source: OsString,
    /// The directory to mount on
    #[arg(value_name = "MOUNTPOINT", value_hint = ValueHint::DirPath)]
    pub(crate) mountpoint: PathBuf,
    /// The consistency of caches and writes; window=SPAN and lazy=SIZE set the span and the size [default: lease]
    #[arg(long, value_name = "MODE", value_parser = ModeParser)]
    pub(crate) mode: Option<Mode>,
    /// Options as in /etc/fstab, separated by commas
    #[arg(short = 'o', value_name = "OPT,…")]
    pub(crate) options: Vec<String>,
    /// Stay in the foreground with a live status line; Ctrl-C unmounts
    #[arg(short = 'f', long)]
    pub(crate) foreground: bool,
    /// How long a call waits for an unreachable server, such as 500ms, 10s, 2m [default: 10s]
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub(crate) deadline: Option<Duration>,
    /// Wait for an unreachable server forever, as NFS does
    #[arg(long, conflicts_with = "deadline")]
    pub(crate) hard: bool,
    /// Memory for names and file contents, such as 64M or 1G [default: 256M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) cache: Option<usize>,
    /// Disk space of the cache that outlives the mount, such as 100M or 8G [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) cache_size: Option<usize>,
    /// Cache nothing on disk
    #[arg(long, conflicts_with = "cache_size")]
    pub(crate) no_cache: bool,
    /// Fetch only requested data: no prefetch of directories and files, no read-ahead (direct and strict never prefetch)
    #[arg(long)]
    pub(crate) no_prefetch: bool,
    /// Never compress messages, not even for a slow line
    #[arg(long)]
    pub(crate) no_compression: bool,
    /// Write changes to a journal on the local disk and return before the server has them: the default in mode lease
    #[arg(long)]
    pub(crate) journal: bool,
    /// No journal: each change waits for the server
    #[arg(long, conflicts_with = "journal")]
    pub(crate) no_journal: bool,
    /// The disk that fsync waits for; `journal` needs a journal [default: server]
    #[arg(long, value_name = "WHERE")]
    pub(crate) fsync: Option<Fsync>,
    /// The symbolic links of the server that programs may follow [default: inside; all over ssh, unix sockets, and for
    /// servers that known_hosts marks as trusted]
    #[arg(long, value_name = "WHICH")]
    pub(crate) symlinks: Option<Symlinks>,
    /// Send at most this many bytes per second over all connections, such as 500K or 2M; `wirefs set` changes it
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) up: Option<u64>,
    /// Receive at most this many bytes per second
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub(crate) down: Option<u64>,
    /// Serve metrics and a live page over HTTP on this address, such as 127.0.0.1:9440
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Admit other users of this machine
    #[arg(long)]
    pub(crate) allow_other: bool,
    /// Set by the process that starts the background one: report on standard output.
    #[arg(long, hide = true)]
    pub(crate) reports: bool,
    /// `mount -f`: do everything but the mount.
    #[arg(long, hide = true)]
    pub(crate) fake: bool,
    /// Options that mount(8) passes to its helpers.
    #[arg(short = 's', hide = true)]
    pub(crate) sloppy: bool,
    #[arg(short = 'n', hide = true)]
    pub(crate) no_mtab: bool,
    #[arg(short = 'v', hide = true)]
    pub(crate) verbose: bool,
    #[arg(short = 't', hide = true, value_name = "TYPE")]
    pub(crate) kind: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Umount {
    /// Unmount even a dead or busy mount; programs that use it get errors
    #[arg(short, long)]
    pub(crate) force: bool,
    /// For `wirefs echo`: discard all data
    #[arg(long)]
    pub(crate) discard: bool,
    /// For `wirefs echo`: save the tree to this file
    #[arg(long, value_name = "FILE", conflicts_with = "discard")]
    pub(crate) save: Option<PathBuf>,
    /// The mountpoint
    #[arg(value_name = "MOUNTPOINT", value_hint = ValueHint::DirPath)]
    pub(crate) mountpoint: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// The mountpoint [default: all mounts of this user]
    #[arg(value_name = "MOUNTPOINT", value_hint = ValueHint::DirPath)]
    pub(crate) mountpoint: Option<PathBuf>,
    /// Show all counters as well
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print JSON: an object for one mount, a list for all
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Print the state once
    #[arg(long)]
    pub(crate) once: bool,
    /// Print JSON: a list with the status and the activity of each mount
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// The process id, or a path [default: all waits]
    #[arg(value_name = "PID|PATH")]
    pub(crate) subject: Option<PathBuf>,
    /// Print JSON: a list of waits
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Sync {
    /// The mountpoint
    #[arg(value_name = "MOUNTPOINT", value_hint = ValueHint::DirPath)]
    pub(crate) mountpoint: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = RECOVER_EXAMPLES)]
pub(crate) struct Recover {
    /// The source of the mount, or /net/NODE [default: all unsent changes]
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<OsString>,
    /// Only list unsent and rejected changes
    #[arg(long, conflicts_with = "source")]
    pub(crate) list: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = CHECKPOINT_EXAMPLES)]
pub(crate) struct Checkpoint {
    #[command(subcommand)]
    pub(crate) action: CheckpointAction,
}

/// Actions on checkpoints.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointAction {
    /// Create a checkpoint of the current tree
    Create {
        /// The mountpoint
        #[arg(value_name = "MOUNTPOINT")]
        mountpoint: PathBuf,
        /// The name of the checkpoint
        #[arg(value_name = "NAME")]
        name: OsString,
    },
    /// List all checkpoints, the oldest first
    List {
        /// The mountpoint
        #[arg(value_name = "MOUNTPOINT")]
        mountpoint: PathBuf,
    },
    /// List changes since a checkpoint: A is added, R removed, M modified
    Diff {
        /// The mountpoint
        #[arg(value_name = "MOUNTPOINT")]
        mountpoint: PathBuf,
        /// The checkpoint to compare
        #[arg(value_name = "NAME")]
        from: OsString,
        /// The later checkpoint [default: the current tree]
        #[arg(value_name = "OTHER")]
        to: Option<OsString>,
    },
    /// Restore a checkpoint; later changes are lost, the checkpoint stays
    Restore {
        /// The mountpoint
        #[arg(value_name = "MOUNTPOINT")]
        mountpoint: PathBuf,
        /// The name of the checkpoint
        #[arg(value_name = "NAME")]
        name: OsString,
    },
    /// Delete a checkpoint
    Drop {
        /// The mountpoint
        #[arg(value_name = "MOUNTPOINT")]
        mountpoint: PathBuf,
        /// The name of the checkpoint
        #[arg(value_name = "NAME")]
        name: OsString,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print JSON: a list of the checks
    #[arg(long)]
    pub(crate) json: bool,
}

/// The program names under which mount(8) calls its helpers.
const HELPER_PREFIXES: [&str; 2] = ["mount.fuse.wirefs", "mount.wirefs"];

/// Converts calls by mount(8) and its helpers to `wirefs mount …`: the program called as `mount.fuse.wirefs`, or
/// `wirefs SOURCE MOUNTPOINT -o …`.
pub(crate) fn with_command(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let called = words.first().map(PathBuf::from);
    let name = called.as_deref().and_then(|path| path.file_name()).unwrap_or_default();
    let is_helper = HELPER_PREFIXES.iter().any(|prefix| name.to_string_lossy().starts_with(prefix));
    if is_helper {
        // `-f` of mount(8) means fake; `-f` of a user means foreground.
        for word in words.iter_mut().skip(1).filter(|word| *word == "-f") {
            *word = "--fake".into();
        }
    }
    let names_source = words.len() > 2 && words.get(1).is_some_and(|word| is_source(word));
    if is_helper || names_source {
        words.insert(1, "mount".into());
    }
    words
}

/// No command contains a colon; every source does.
fn is_source(word: &OsStr) -> bool {
    let bytes = word.as_encoded_bytes();
    !bytes.starts_with(b"-") && bytes.contains(&b':')
}

/// Parses a duration: `500ms`, `10s`, `2m`, or seconds without a unit.
pub(crate) fn parse_span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write 500ms, 10s or 2m");
    let (number, unit) = split_unit(text).ok_or_else(wrong)?;
    let ms_each = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" | "min" => 60_000,
        _ => return Err(wrong()),
    };
    let ms = number.checked_mul(ms_each).filter(|&ms| ms > 0).ok_or_else(wrong)?;
    Ok(Duration::from_millis(ms))
}

/// Parses a size in bytes: `64M`, `1G`, `512K`, or bytes without a unit.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let wrong = || format!("`{text}` is not a size; write 64M or 1G");
    let (number, unit) = split_unit(text).ok_or_else(wrong)?;
    let shift = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(1 << shift).and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(wrong)
}

fn split_unit(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, unit.trim()))
}

#[cfg(test)]
mod tests;
