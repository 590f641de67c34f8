//! Serves the named exports of a configuration file.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use wirefs_hostfs::{DetectionMode, HostOptions, HostTree, WatchKind};
use wirefs_serve::{ExportRouter, ServeOptions, Server};

use super::config::{Config, ExportConfig};
use super::lease_marker::LeaseMarkers;
use super::{
    announce, bind_all, boot, discovery, identity_of, ledger_dir, open_markers, rights, with_markers,
};
use crate::arguments::{self, ExportRights};
use crate::sys::Signals;

/// Serves until a signal.
pub(super) fn run(file: &Path, signals: &Signals) -> Result<()> {
    let config = Config::read(file)?;
    let (listeners, authorized) = bind_all(&arguments::Serve {
        directory: None,
        config: Some(file.to_owned()),
        listen: config.listen,
        authorized: config.authorized,
        read_only: false,
        exclusive: false,
        rights: ExportRights::default(),
        announce: config.announce,
        metrics: None,
        stdio: false,
    })?;
    let router = Arc::new(ExportRouter::new(rights::check(authorized.clone())));
    let mut markers = Vec::new();
    for export in &config.exports {
        let (server, of_export) = start(export).with_context(|| format!("export `{}`", export.name))?;
        router.add(&export.name, server);
        markers.extend(of_export.map(|of_export| (export.name.clone(), of_export)));
    }
    if let Some(file) = authorized {
        rights::watch(&router, file)?;
    }
    if config.announce {
        let names = config.exports.iter().map(|export| export.name.clone()).collect();
        discovery::start(&listeners, names)?;
    }
    for listener in listeners {
        for export in &config.exports {
            announce(&export.path, &export.name, &listener);
        }
        router.listen(listener).context("cannot start a thread")?;
    }
    signals.wait().context("cannot wait for signals")?;
    router.stop();
    let servers = router.servers();
    for (name, markers) in markers {
        markers.finish(servers.get(&name).is_some_and(|server| server.are_leases_out()));
    }
    Ok(())
}

fn start(export: &ExportConfig) -> Result<(Server, Option<Arc<LeaseMarkers>>)> {
    let (path, boot) = (&export.path, boot::id_of(&export.path));
    let markers = open_markers(path);
    let detection = match &markers {
        Some(_) => DetectionMode::Watched(WatchKind::Filesystem),
        None => DetectionMode::Nothing,
    };
    let rights = export.rights.host_options();
    let host = HostOptions { read_only: export.read_only, boot, detection, ..rights };
    let tree = Arc::new(HostTree::open(path, host)?);
    let options =
        ServeOptions { ledger: ledger_dir(path), place: identity_of(path), ..ServeOptions::new(boot) };
    let server =
        Server::start(tree, with_markers(options, markers.as_ref())).context("cannot start threads")?;
    Ok((server, markers))
}
