//! The keys that may join, and may access the export.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use wirefs_carrier::tls::{AuthorizedKeys, PublicKey};
use wirefs_node::NodeKey;
use wirefs_nodehost::NodeHost;

use crate::arguments;
use crate::failure::failure;
use crate::terminal::note;
use crate::user_dirs;

/// The file of all known nodes' keys, for the export's server.
const KNOWN_KEYS: &str = "node.keys";
/// The interval of checks of the table without a change notification.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The keys that may join.
pub(super) enum NodeAdmission {
    /// Keys in this file.
    Listed(PathBuf, BTreeSet<NodeKey>),
    /// Any key whose packets arrive.
    Anyone,
}

impl NodeAdmission {
    /// Returns the keys of the configured file, or of the default one; with `--open`, any key.
    ///
    /// # Errors
    /// Fails if there is no file, or if it cannot be read or is writable by others.
    pub(super) fn of(arguments: &arguments::NodeUp) -> Result<NodeAdmission> {
        if arguments.open {
            return Ok(NodeAdmission::Anyone);
        }
        let default_file = user_dirs::config_dir()?.join("authorized_keys");
        let file = arguments.authorized.clone().unwrap_or_else(|| default_file.clone());
        if arguments.authorized.is_none() && !file.exists() {
            return Err(failure(
                format!("{} does not exist, so no other node could join", file.display()),
                "run `wirefs node invite` on another node and join with its code by --join, or add its key from `wirefs identity` there with `wirefs allow`; `--open` lets everyone on the network join",
            ));
        }
        let listed = AuthorizedKeys::read(&file).map_err(|error| {
            failure(
                error.to_string(),
                "the file needs a line for each node; `wirefs identity` prints it there",
            )
        })?;
        for broken in listed.broken() {
            note!("wirefs: {broken}");
        }
        let keys = node_keys(&listed);
        Ok(NodeAdmission::Listed(file, keys))
    }

    pub(super) fn trusted(&self) -> Option<BTreeSet<NodeKey>> {
        match self {
            NodeAdmission::Listed(_, keys) => Some(keys.clone()),
            NodeAdmission::Anyone => None,
        }
    }

    /// Returns the authorized-keys file of the export's server: the configured one, or one that follows the table.
    ///
    /// # Errors
    /// Fails without a directory for it.
    pub(super) fn file(&self) -> Result<PathBuf> {
        match self {
            NodeAdmission::Listed(file, _) => Ok(file.clone()),
            NodeAdmission::Anyone => {
                let file = user_dirs::create_runtime_dir()?.join(KNOWN_KEYS);
                write(&file, "")?;
                Ok(file)
            }
        }
    }

    /// Keeps both in step in a thread of its own: if any key may join, the file of the server follows the table, else
    /// the keys that may join follow their file.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(super) fn follow(&self, server: PathBuf, host: &Arc<NodeHost>) -> Result<()> {
        let host = Arc::clone(host);
        let follow: Box<dyn FnOnce() + Send> = match self {
            NodeAdmission::Listed(file, keys) => {
                let (file, keys) = (file.clone(), keys.clone());
                Box::new(move || follow_file(&file, keys, &host))
            }
            NodeAdmission::Anyone => {
                let port = host.nodes().first().map(|own| own.record.port).unwrap_or_default();
                note!(
                    "wirefs: --open: everyone who can send to UDP port {port} of this machine may join and use the shared files"
                );
                Box::new(move || follow_table(&server, &host))
            }
        };
        thread::Builder::new().name("wirefs-keys".into()).spawn(follow).context("cannot start a thread")?;
        Ok(())
    }
}

/// Trusts the keys of the file. While it cannot be read, the previous keys count.
fn follow_file(file: &Path, mut trusted: BTreeSet<NodeKey>, host: &NodeHost) {
    let mut seen = 0;
    while !host.is_over() {
        if let Ok(listed) = AuthorizedKeys::read(file) {
            let keys = node_keys(&listed);
            if keys != trusted {
                trusted.clone_from(&keys);
                host.set_trusted(keys);
            }
        }
        seen = host.await_change(seen, CHECK_INTERVAL);
    }
}

fn node_keys(listed: &AuthorizedKeys) -> BTreeSet<NodeKey> {
    listed.keys().map(|key| NodeKey(*key.raw())).collect()
}

fn follow_table(file: &Path, host: &NodeHost) {
    let (mut seen, mut written) = (0, String::new());
    while !host.is_over() {
        let line = |key: &NodeKey, name: &str| PublicKey::from_raw(key.0).line(name) + "\n";
        let nodes = host.nodes();
        let text: String =
            nodes.iter().map(|node| line(&node.record.key, node.record.name.as_str())).collect();
        if text != written {
            match write(file, &text) {
                Ok(()) => written = text,
                Err(error) => note!("wirefs: {error:#}; so new nodes cannot use the shared directory"),
            }
        }
        seen = host.await_change(seen, CHECK_INTERVAL);
    }
    let _gone = std::fs::remove_file(file);
}

/// Writes the file atomically: readers see the old or the new contents.
fn write(file: &Path, text: &str) -> Result<()> {
    let temporary = file.with_extension("new");
    std::fs::write(&temporary, text)
        .and_then(|()| std::fs::rename(&temporary, file))
        .with_context(|| format!("cannot write {}", file.display()))
}
