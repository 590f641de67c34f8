//! The source that is served: a directory of this machine, or the tree of a server.

use crate::dial;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wirefs_cache::Mode;
use wirefs_carrier::{Dial, Source};
use wirefs_client::call::{Answer, Call, Caller};
use wirefs_hostfs::{DetectionMode, HostOptions, HostTree, WatchKind};
use wirefs_mount::{CONNECTIONS_MAX, MountPlan, UserSpaceMount, connect};
use wirefs_ninep::{Files, NineUsers};
use wirefs_op::Errno;
use wirefs_op::message::version::BootId;
use wirefs_serve::{LocalDial, ServeOptions, ServedPlace, Server};

/// The threads of clients that may execute requests in a tree of this process at a time.
const THREADS_HERE: usize = 16;

/// A source on the command line.
#[derive(Clone, Debug, Args)]
pub struct SourceOptions {
    /// A directory here, or a source as `wirefs mount` takes it: [user@]host:dir, tls://host/dir, unix:///socket
    #[arg(value_name = "SOURCE")]
    pub source: OsString,
    /// Refuse changes
    #[arg(long)]
    pub read_only: bool,
    #[command(flatten)]
    rights: DirectoryRights,
    /// When to check, send and fetch, as of `wirefs mount`
    #[arg(long, value_name = "MODE", default_value = "lease", value_parser = Mode::parse)]
    pub mode: Mode,
    /// Memory for cached contents, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    pub cache_size: u16,
    /// Seconds that a call waits for a silent server; 0: for ever
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub deadline: u64,
    /// The directory of our key and of known hosts, for tls:// sources
    #[arg(long, value_name = "DIR")]
    pub identity: Option<PathBuf>,
}

/// The rights of clients in a directory of this machine, beside those to read and write files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
struct DirectoryRights {
    /// Let clients set set-user-id and set-group-id bits and file capabilities in a directory here
    #[arg(long)]
    suid: bool,
    /// Let clients create device files in a directory here
    #[arg(long)]
    dev: bool,
    /// Serve file systems that are mounted below a directory here, too
    #[arg(long)]
    cross_mounts: bool,
}

/// The mounted tree, as the protocols call it.
struct MountedTree {
    mount: UserSpaceMount,
    read_only: bool,
}

impl Files for MountedTree {
    fn call(&self, caller: Caller, call: Call<'_>) -> Answer {
        if self.read_only && is_change(&call) {
            return Answer::Fail(Errno::ReadOnly);
        }
        self.mount.call(caller, call)
    }
}

/// Whether a call would change the tree.
fn is_change(call: &Call<'_>) -> bool {
    match call {
        Call::Open { how, .. } => !how.only_reads(),
        Call::Setattr { .. }
        | Call::Mknod { .. }
        | Call::Mkdir { .. }
        | Call::Symlink { .. }
        | Call::Unlink { .. }
        | Call::Rmdir { .. }
        | Call::Rename { .. }
        | Call::Link { .. }
        | Call::Create { .. }
        | Call::Tmpfile { .. }
        | Call::Write { .. }
        | Call::Setxattr { .. }
        | Call::Removexattr { .. }
        | Call::Fallocate { .. }
        | Call::CopyRange { .. } => true,
        Call::Lookup { .. }
        | Call::Forget { .. }
        | Call::Getattr { .. }
        | Call::Readlink { .. }
        | Call::Read { .. }
        | Call::Flush { .. }
        | Call::Release { .. }
        | Call::Fsync { .. }
        | Call::Opendir { .. }
        | Call::Readdir { .. }
        | Call::Releasedir { .. }
        | Call::Fsyncdir { .. }
        | Call::Syncfs { .. }
        | Call::Statfs { .. }
        | Call::Getxattr { .. }
        | Call::Listxattr { .. }
        | Call::Access { .. }
        | Call::Getlk { .. }
        | Call::Setlk { .. }
        | Call::Lseek { .. }
        | Call::Interrupt { .. } => false,
    }
}

/// A source in use.
pub struct OpenSource {
    tree: Arc<MountedTree>,
    /// The server of a directory of this machine.
    server: Option<Arc<Server>>,
}

impl OpenSource {
    /// Opens a directory, or reaches a server.
    ///
    /// # Errors
    /// The directory cannot be exported, or the server cannot be reached; each says the next step.
    pub fn open(options: &SourceOptions) -> Result<OpenSource> {
        let (dial, path, server) = match is_directory(&options.source) {
            true => {
                let server = Arc::new(serve(options)?);
                let dial: Arc<dyn Dial> = Arc::new(LocalDial::new(Arc::clone(&server)));
                (dial, Vec::new(), Some(server))
            }
            false if options.rights != DirectoryRights::default() => bail!(
                "--suid, --dev and --cross-mounts are for a directory of this machine\n  next step: give them to the \
                 server of this source"
            ),
            false => {
                let source = Source::parse(options.source.as_bytes())?;
                let (dial, path) = dial::of(&source, options.identity.as_ref())?;
                (dial, path, None)
            }
        };
        let mount = connect(plan(options, dial, path))?;
        let mount = mount.mount_in_user_space().context("cannot start threads")?;
        let read_only = options.read_only || mount.attachment().read_only;
        Ok(OpenSource { tree: Arc::new(MountedTree { mount, read_only }), server })
    }

    /// The tree, as protocols call it.
    pub fn files(&self) -> Arc<dyn Files> {
        Arc::clone(&self.tree) as Arc<dyn Files>
    }

    /// The user that runs the gate: calls of clients that name none are this user's.
    pub fn users(&self) -> NineUsers {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        NineUsers { uid: uid.as_raw(), gid: gid.as_raw() }
    }

    /// Sends pending changes, and stops.
    pub fn end(self) {
        // Threads of clients may hold the tree still; what they change from now on is lost, as their connection is.
        if self.tree.mount.sync().is_err() {
            eprintln!(
                "wirefs-gate: the server did not take all changes in time; those not synced may be lost"
            );
        }
        drop(self.tree);
        if let Some(server) = self.server {
            server.stop();
        }
    }
}

/// Whether a source is a directory of this machine: it has no `:` before its first `/`.
fn is_directory(source: &OsStr) -> bool {
    let bytes = source.as_bytes();
    bytes.iter().find(|byte| matches!(byte, b':' | b'/')) != Some(&b':')
}

fn serve(options: &SourceOptions) -> Result<Server> {
    let directory = Path::new(&options.source);
    let place = std::fs::metadata(directory)
        .ok()
        .map(|found| ServedPlace { device: found.dev(), inode: found.ino() });
    // Its only client is in this process, and ends with it.
    let boot = BootId(u64::from(std::process::id()));
    let detection = DetectionMode::Watched(WatchKind::Filesystem);
    let host = HostOptions {
        read_only: options.read_only,
        cross_mounts: options.rights.cross_mounts,
        allows_set_id: options.rights.suid,
        allows_devices: options.rights.dev,
        boot,
        detection,
    };
    let tree = HostTree::open(directory, host)?;
    Server::start(Arc::new(tree), ServeOptions { place, ..ServeOptions::new(boot) })
        .context("cannot start threads")
}

fn plan(options: &SourceOptions, dial: Arc<dyn Dial>, path: Vec<u8>) -> MountPlan {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    MountPlan {
        dial,
        path,
        user: "wirefs-gate".to_owned(),
        mode: options.mode,
        deadline: (options.deadline > 0).then(|| Duration::from_secs(options.deadline)),
        cache_bytes_max: usize::from(options.cache_size) << 20,
        threads: THREADS_HERE,
        connections_max: CONNECTIONS_MAX,
        uid,
        gid,
        confines_links: false,
        store: None,
        journal: None,
        tell: |waits| eprintln!("wirefs-gate: waiting: {waits:?}"),
    }
}
