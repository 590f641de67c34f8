//! `wirefs-lab up`: two hosts that exist until the program is stopped.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use wirefs_lab::{EndSignals, LinkOptions};

use super::host_pair::HostPair;

#[derive(Args)]
pub(crate) struct UpArguments {
    /// Distinguishes labs; becomes part of the namespaces' names.
    #[arg(long, default_value = "up")]
    name: String,
    #[command(flatten)]
    options: LinkOptions,
    /// Creates a socket at this path; `wirefs-lab control` changes the link through it.
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Also writes the variables to this file, atomically, as soon as the link works. The file is removed at the end.
    #[arg(long, value_name = "FILE")]
    ready: Option<PathBuf>,
}

/// Creates the hosts, prints their names as shell variables, and waits for SIGINT, SIGTERM or SIGHUP.
pub(crate) fn run(arguments: &UpArguments) -> anyhow::Result<ExitCode> {
    let signals = EndSignals::block().context("block signals")?;
    let pair = HostPair::new(&arguments.name, &arguments.options, arguments.control.as_deref())?;
    let lines: String = pair.variables().iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    print!("{lines}");
    if let Some(ready) = &arguments.ready {
        // Renamed into place, so that a waiting script never reads a partial file.
        let partial = ready.with_extension("partial");
        fs::write(&partial, &lines).with_context(|| format!("write {}", partial.display()))?;
        fs::rename(&partial, ready).with_context(|| format!("write {}", ready.display()))?;
    }
    signals.wait().context("wait for a signal")?;
    if let Some(ready) = &arguments.ready {
        fs::remove_file(ready).ok();
    }
    Ok(ExitCode::SUCCESS)
}
