//! Whose keys may join, and may use what is shared.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use wirefs_carrier::tls::{AuthorizedKeys, PublicKey};
use wirefs_driver::node::NodeHost;
use wirefs_node::NodeKey;

use crate::arguments;
use crate::failure::failure;
use crate::places;
use crate::terminal::note;

/// The keys of the nodes that are known, where the server of what is shared finds them.
const KNOWN: &str = "node.keys";
/// How often the table is looked at though nothing was heard.
const LOOK_EACH: Duration = Duration::from_secs(1);

/// Who may join.
pub(super) enum Admission {
    /// Whose keys are in this file.
    Listed(PathBuf, BTreeSet<NodeKey>),
    /// Whoever can send packets to the node.
    Anyone,
}

impl Admission {
    /// The file that was named, or the usual one where there is one.
    ///
    /// # Errors
    /// The file cannot be read, or others can change it.
    pub(super) fn of(arguments: &arguments::NodeUp) -> Result<Admission> {
        let usual = || places::config_dir().ok().map(|dir| dir.join("authorized_keys"));
        let file = arguments.authorized.clone().or_else(|| usual().filter(|file| file.exists()));
        let Some(file) = file else { return Ok(Admission::Anyone) };
        let listed = AuthorizedKeys::read(&file).map_err(|error| {
            failure(error.to_string(), "it has the line that `wirefs identity` prints at each node")
        })?;
        for broken in listed.broken() {
            note!("wirefs: {broken}");
        }
        let keys = listed.keys().map(|key| NodeKey(*key.raw())).collect();
        Ok(Admission::Listed(file, keys))
    }

    pub(super) fn trusted(&self) -> Option<BTreeSet<NodeKey>> {
        match self {
            Admission::Listed(_, keys) => Some(keys.clone()),
            Admission::Anyone => None,
        }
    }

    /// The file that the server reads at each connection: the one that was given, or one that follows the table.
    ///
    /// # Errors
    /// There is no place for it.
    pub(super) fn file(&self) -> Result<PathBuf> {
        match self {
            Admission::Listed(file, _) => Ok(file.clone()),
            Admission::Anyone => {
                let file = places::make_runtime_dir()?.join(KNOWN);
                write(&file, "")?;
                Ok(file)
            }
        }
    }

    /// Keeps that file as the table is, on a thread of its own, where anyone may join.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn follow(&self, file: PathBuf, host: &Arc<NodeHost>) -> Result<()> {
        if matches!(self, Admission::Listed(..)) {
            return Ok(());
        }
        let port = host.nodes().first().map(|own| own.record.port).unwrap_or_default();
        note!(
            "wirefs: there is no authorized-keys file, so whoever can send to UDP port {port} of this machine may join, \
             and has what is shared; see `wirefs node up --help`"
        );
        let host = Arc::clone(host);
        let follow = move || follow(&file, &host);
        thread::Builder::new().name("wirefs-keys".into()).spawn(follow).context("cannot start a thread")?;
        Ok(())
    }
}

fn follow(file: &Path, host: &NodeHost) {
    let (mut seen, mut written) = (0, String::new());
    while !host.is_over() {
        let line = |key: &NodeKey, name: &str| PublicKey::from_raw(key.0).line(name) + "\n";
        let nodes = host.nodes();
        let text: String =
            nodes.iter().map(|node| line(&node.record.key, node.record.name.as_str())).collect();
        if text != written {
            match write(file, &text) {
                Ok(()) => written = text,
                Err(error) => note!("wirefs: {error:#}; so nodes that are new cannot use what is shared"),
            }
        }
        seen = host.await_change(seen, LOOK_EACH);
    }
    let _gone = std::fs::remove_file(file);
}

/// Writes it in one step: who reads it meanwhile has the old one, or the new one.
fn write(file: &Path, text: &str) -> Result<()> {
    let draft = file.with_extension("new");
    std::fs::write(&draft, text)
        .and_then(|()| std::fs::rename(&draft, file))
        .with_context(|| format!("cannot write {}", file.display()))
}
