//! What can be written on the command line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use wirefs_cache::Mode;
use wirefs_carrier::Address;

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
  tcp+plain://host:port/path  neither encrypted nor authenticated

Examples:
  wirefs mount host:project ~/project
  wirefs mount me@host: /mnt/home -o ro,ssh_command=\"ssh -p 2222\"
  wirefs mount tls://nas/photos ~/photos --mode window=5s
In /etc/fstab:
  tls://nas/photos  /mnt/photos  fuse.wirefs  noauto,user,_netdev  0 0

Options of -o
  ro rw suid nosuid dev nodev exec noexec allow_other default_permissions hard
  mode=MODE deadline=SPAN cache=SIZE threads=N uid=N gid=N fsname=NAME
  identity=DIR known_hosts=FILE ssh_command=COMMAND port=N (of ssh)
  flags of mount(8) such as noatime, and what only mount(8) and systemd read
  (_netdev noauto user nofail x-…). A comma inside a value is written \\,";

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
    /// Take a mount away
    #[command(visible_alias = "unmount")]
    Umount(Umount),
    /// Show what mounts do
    Status(Status),
    /// Wait until all that was written is on the server's disk
    Sync(Sync),
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
    /// The directory to export
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Where to listen: tls://host:port, unix:///path/of/socket or tcp+plain://host:port [default: tls://0.0.0.0:6440]
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
    /// How fresh what is shown must be: lease (the server tells before it changes), window[=SPAN] (at most so old, 1s
    /// unless named) or strict (asks each time) [default: lease]
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
    /// Memory for file contents, such as 64M or 1G [default: 256M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) cache: Option<usize>,
    /// Let other users of this machine in
    #[arg(long)]
    pub(crate) allow_other: bool,
    /// Told by the process that starts the background one: report there on standard output.
    #[arg(long, hide = true)]
    pub(crate) reports: bool,
    /// `mount -f`: do everything but the mount.
    #[arg(long, hide = true)]
    pub(crate) fake: bool,
    /// What mount(8) hands to its helpers.
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
pub(crate) struct Doctor {
    /// For programs: a list of the checks
    #[arg(long)]
    pub(crate) json: bool,
}

/// The names under which mount(8) calls its helpers.
const HELPER_PREFIXES: [&str; 2] = ["mount.fuse.wirefs", "mount.wirefs"];

/// Turns what mount(8) and its helpers write into `wirefs mount …`: the program called as `mount.fuse.wirefs`, or
/// `wirefs SOURCE MOUNTPOINT -o …`.
pub(crate) fn with_command(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let called = words.first().map(PathBuf::from);
    let name = called.as_deref().and_then(|path| path.file_name()).unwrap_or_default();
    let is_helper = HELPER_PREFIXES.iter().any(|prefix| name.to_string_lossy().starts_with(prefix));
    if is_helper {
        // For mount(8) -f means fake; for people it means foreground.
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

/// No command has a colon in it, and each source has.
fn is_source(word: &OsStr) -> bool {
    let bytes = word.as_encoded_bytes();
    !bytes.starts_with(b"-") && bytes.contains(&b':')
}

/// Reads a span of time: `500ms`, `10s`, `2m`, or seconds without a unit.
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

/// Reads a size in bytes: `64M`, `1G`, `512K`, or bytes without a unit.
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
