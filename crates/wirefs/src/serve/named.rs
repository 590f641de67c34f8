//! Serves the named exports of a configuration file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use wirefs_hostfs::{DetectionMode, HostOptions, HostTree, WatchKind};
use wirefs_serve::{ExportRouter, ServeOptions, Server};

use super::config::{Config, ExportConfig};
use super::lease_marker::LeaseMarkers;
use super::{
    announce, bind_all, boot, discovery, identity_of, ledger_dir, notify, open_markers, rights, with_markers,
};
use crate::arguments::{self, ExportRights};
use crate::sys::{self, Signals};
use crate::terminal::{note, say};

/// Serves until a signal. SIGHUP reads the file again.
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
    let mut exports = RunningExports::default();
    for export in config.exports {
        exports.start(&router, export)?;
    }
    if let Some(file) = authorized {
        rights::watch(&router, file)?;
    }
    if config.announce {
        discovery::start(&listeners, exports.0.keys().cloned().collect())?;
    }
    for listener in listeners {
        for (name, export) in &exports.0 {
            announce(&export.config.path, name, &listener);
        }
        router.listen(listener).context("cannot start a thread")?;
    }
    notify::ready();
    while signals.wait().context("cannot wait for signals")? == sys::HANG_UP {
        notify::reloading();
        match exports.reload(&router, file) {
            Ok(()) => say!("read {} again; exports: {}", file.display(), exports.names()),
            Err(error) => {
                note!("wirefs: {error:#}; the exports stay as they were");
            }
        }
        notify::ready();
    }
    notify::stopping();
    router.stop();
    let servers = router.servers();
    for (name, export) in exports.0 {
        export.finish(servers.get(&name).is_some_and(|server| server.are_leases_out()));
    }
    Ok(())
}

/// The exports of a running server by name.
#[derive(Default)]
struct RunningExports(BTreeMap<String, RunningExport>);

struct RunningExport {
    config: ExportConfig,
    markers: Option<Arc<LeaseMarkers>>,
}

impl RunningExport {
    fn finish(self, has_leases_out: bool) {
        if let Some(markers) = self.markers {
            markers.finish(has_leases_out);
        }
    }
}

impl RunningExports {
    fn start(&mut self, router: &ExportRouter, config: ExportConfig) -> Result<()> {
        let (server, markers) = start(&config).with_context(|| format!("export `{}`", config.name))?;
        router.add(&config.name, server);
        self.0.insert(config.name.clone(), RunningExport { config, markers });
        Ok(())
    }

    /// Reads the file again: ends exports that are gone or changed, and starts those that are new or changed. Addresses
    /// and the authorized-keys file stay.
    ///
    /// # Errors
    /// The file is not valid, and all exports stay; or an export cannot be started.
    fn reload(&mut self, router: &ExportRouter, file: &Path) -> Result<()> {
        let wanted = Config::read(file)?.exports;
        let is_kept = |running: &RunningExport| wanted.contains(&running.config);
        let ended: Vec<String> =
            self.0.iter().filter(|(_, running)| !is_kept(running)).map(|(name, _)| name.clone()).collect();
        for name in ended {
            let server = router.remove(&name);
            let has_leases_out = server.is_some_and(|server| {
                server.stop();
                server.are_leases_out()
            });
            if let Some(export) = self.0.remove(&name) {
                export.finish(has_leases_out);
            }
        }
        for config in wanted {
            if !self.0.contains_key(&config.name) {
                self.start(router, config)?;
            }
        }
        Ok(())
    }

    fn names(&self) -> String {
        self.0.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }
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
