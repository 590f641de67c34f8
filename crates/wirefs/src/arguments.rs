//! The command line.

mod echo;
mod fsync;
mod node;
mod quarantine;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use wirefs_cache::Mode;
use wirefs_carrier::Address;

pub(crate) use echo::{Echo, EchoCommand, EchoHost, EchoMount, EchoStatus, Keep};
pub(crate) use fsync::Fsync;
pub(crate) use node::{Node, NodeCommand, NodeList, NodeMode, NodeUp};
pub(crate) use quarantine::{Quarantine, QuarantineAction};

const ABOUT: &str = "Mounts directories of other machines, over any wire";

const EXAMPLES: &str = "\
Examples:
  wirefs mount host:project ~/project        a directory of another machine, through ssh
  wirefs mount tls://nas:6440/photos ~/p     the same through TLS, from a running `wirefs serve`
  wirefs serve ~/shared                      export a directory on port 6440
  wirefs status                              what the mounts do
  wirefs umount ~/project                    take it away
  wirefs doctor                              what is missing on this machine, and how to mend it";

const SERVE_EXAMPLES: &str = "\
Examples:
  wirefs serve ~/shared
  wirefs serve /srv/data --read-only --listen tls://0.0.0.0:7000 --authorized /etc/wirefs/keys
  wirefs serve . --listen unix:///tmp/here.sock

Clients of tls:// addresses must have their key, which `wirefs identity`
prints, in the authorized-keys file. A unix socket can be used by the user who
made it, and by root. tcp+plain:// lets in everyone who reaches it. Through ssh
nothing has to be started: `wirefs mount host:dir mnt` starts the server there.";

const MOUNT_EXAMPLES: &str = "\
SOURCE is one of
  [user@]host:path            through the system's ssh; path as the login has it
  tls://host[:port]/path      a `wirefs serve`, encrypted; port 6440 unless named
  unix:///path/of/socket      a `wirefs serve` of this machine
  ether://MAC@card[,card]/path  a `wirefs serve` on the same Ethernet, encrypted, without IP
  blocks:///DIR               a block tree in a directory of this machine
  blocks+memory:              a block tree that ends with its mount
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
  threads=N connections=N uid=N gid=N fsname=NAME
  identity=DIR known_hosts=FILE ssh_command=COMMAND port=N (of ssh)
  flags of mount(8) such as noatime, and what only mount(8) and systemd read
  (_netdev noauto user nofail x-…). A comma inside a value is written \\,";

const RECOVER_EXAMPLES: &str = "\
Examples:
  wirefs recover --list
  wirefs recover tls://nas/photos
  wirefs recover /net/linus2           what was changed on a node, by this machine's node

The next mount of the same source does the same before anything else. What the
server refuses is kept aside, with the reason, and never dropped in silence.";

const CHECKPOINT_EXAMPLES: &str = "\
Examples:
  wirefs checkpoint create ~/tree before
  wirefs checkpoint diff ~/tree before
  wirefs checkpoint restore ~/tree before

Each is readable below the mountpoint, under .checkpoints/NAME. Making a file
__checkpoint_NAME anywhere in the tree makes a checkpoint too, and removing that
file goes back to it.";

/// Mounts directories of other machines, over any wire.
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
    /// Mount a directory of another machine
    Mount(Mount),
    /// Mount a file system whose blocks are in pings under way
    Echo(Echo),
    /// Be a node among others: what each shares is at /net/NODE, and nothing is mounted by hand
    Node(Node),
    /// Take a mount away
    #[command(visible_alias = "unmount")]
    Umount(Umount),
    /// Show what mounts do
    Status(Status),
    /// Wait until all that was written is on the server's disk
    Sync(Sync),
    /// Bring to the server what a mount that died had in its journal
    Recover(Recover),
    /// Look at, take out and drop what servers refused
    Quarantine(Quarantine),
    /// Keep, compare and restore states of a block tree
    Checkpoint(Checkpoint),
    /// Check this machine, and say how to mend what is missing
    Doctor(Doctor),
    /// Print this user's key, as a server's authorized-keys file takes it
    Identity,
    /// Print the completions of a shell
    #[command(
        after_help = "Example:\n  wirefs completions bash > ~/.local/share/bash-completion/completions/wirefs"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write all of them
    Man {
        /// Write one page for each command into this directory
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct Serve {
    /// The directory to export, or a block tree: blocks:///DIR, blocks+memory:
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Where to listen: tls://host:port, unix:///path/of/socket, ether://card or tcp+plain://host:port [default: tls://0.0.0.0:6440]
    #[arg(long, value_name = "URL")]
    pub(crate) listen: Vec<Address>,
    /// Refuse all changes
    #[arg(long)]
    pub(crate) read_only: bool,
    /// No other program changes this directory while it is served, so nothing needs to be watched
    #[arg(long)]
    pub(crate) exclusive: bool,
    /// The keys that may connect through TLS [default: ~/.config/wirefs/authorized_keys]
    #[arg(long, value_name = "FILE")]
    pub(crate) authorized: Option<PathBuf>,
    /// Serve one client on standard input and output; ssh starts it so
    #[arg(long, conflicts_with_all = ["listen", "authorized"])]
    pub(crate) stdio: bool,
}

#[derive(Debug, Args)]
#[command(after_help = MOUNT_EXAMPLES)]
pub(crate) struct Mount {
    /// What to mount
    #[arg(value_name = "SOURCE")]
    pub(crate) source: OsString,
    /// The directory to mount it on
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) mountpoint: PathBuf,
    /// How fresh what is shown must be, and when what is written is sent: lease (the server tells before it changes),
    /// window[=SPAN] (at most so old, 1s unless named), session (whole files: asked at open, replaced at close),
    /// lazy[=SIZE] (window, sent in pieces of 1k unless named), commit (window, close waits for the server's disk),
    /// direct (lease, but contents are never kept and writes wait) or strict (asks each time) [default: lease]
    #[arg(long, value_name = "MODE", value_parser = Mode::parse)]
    pub(crate) mode: Option<Mode>,
    /// Options as in /etc/fstab, separated by commas
    #[arg(short = 'o', value_name = "OPT,…")]
    pub(crate) options: Vec<String>,
    /// Stay in the foreground with a live line of what happens; Ctrl-C unmounts
    #[arg(short = 'f', long)]
    pub(crate) foreground: bool,
    /// How long a call may wait for a silent server, such as 500ms, 10s, 2m [default: 10s]
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub(crate) deadline: Option<Duration>,
    /// Wait for a silent server for ever, as NFS does
    #[arg(long, conflicts_with = "deadline")]
    pub(crate) hard: bool,
    /// Memory for names and file contents, such as 64M or 1G [default: 256M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) cache: Option<usize>,
    /// Disk space for file contents that are kept between mounts, such as 100M or 8G [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) cache_size: Option<usize>,
    /// Keep nothing on disk
    #[arg(long, conflicts_with = "cache_size")]
    pub(crate) no_cache: bool,
    /// Fetch only what a program asks for: no other directories and files ahead, and no blocks ahead of a reader (modes lease, window,
    /// lazy and commit; direct and strict never do)
    #[arg(long)]
    pub(crate) no_prefetch: bool,
    /// Keep a journal on disk, so that changes are done before the server has them: the default in mode lease
    #[arg(long)]
    pub(crate) journal: bool,
    /// Keep none: each change waits for the server
    #[arg(long, conflicts_with = "journal")]
    pub(crate) no_journal: bool,
    /// What fsync waits for; the journal's disk needs a journal [default: server]
    #[arg(long, value_name = "WHERE")]
    pub(crate) fsync: Option<Fsync>,
    /// Let other users of this machine in
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
    /// Succeed whatever state the mount is in: programs that use it get errors
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Of `wirefs echo`: let the data go
    #[arg(long)]
    pub(crate) discard: bool,
    /// Of `wirefs echo`: write the tree to this file
    #[arg(long, value_name = "FILE", conflicts_with = "discard")]
    pub(crate) save: Option<PathBuf>,
    /// The mount
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) mountpoint: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// The mount; without it all of this user's
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) mountpoint: Option<PathBuf>,
    /// For programs: an object for the mount, or a list of all
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Sync {
    /// The mount
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) mountpoint: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = RECOVER_EXAMPLES)]
pub(crate) struct Recover {
    /// What was mounted, or a node's place; without it everything that was left
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<OsString>,
    /// Show what was left, and what servers refused, and do nothing
    #[arg(long, conflicts_with = "source")]
    pub(crate) list: bool,
    /// For programs: an object
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
    /// Keep the tree as it is now
    Create {
        /// The mount
        #[arg(value_name = "MOUNTPOINT")]
        mountpoint: PathBuf,
        /// The name to keep it under
        #[arg(value_name = "NAME")]
        name: OsString,
    },
    /// Show all of them, the oldest first
    List {
        /// The mount
        #[arg(value_name = "MOUNTPOINT")]
        mountpoint: PathBuf,
    },
    /// Show what has changed since: A is added, R removed, M modified
    Diff {
        /// The mount
        #[arg(value_name = "MOUNTPOINT")]
        mountpoint: PathBuf,
        /// The checkpoint to compare
        #[arg(value_name = "NAME")]
        from: OsString,
        /// The later one to compare it with [default: the tree as it is now]
        #[arg(value_name = "OTHER")]
        to: Option<OsString>,
    },
    /// Go back to a checkpoint; it stays, and what was changed since is gone
    Restore {
        /// The mount
        #[arg(value_name = "MOUNTPOINT")]
        mountpoint: PathBuf,
        /// Its name
        #[arg(value_name = "NAME")]
        name: OsString,
    },
    /// Forget a checkpoint
    Drop {
        /// The mount
        #[arg(value_name = "MOUNTPOINT")]
        mountpoint: PathBuf,
        /// Its name
        #[arg(value_name = "NAME")]
        name: OsString,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// For programs: a list of the checks
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
    let wrong = || format!("`{text}` is not a span of time; write 500ms, 10s or 2m");
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
