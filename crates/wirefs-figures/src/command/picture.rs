//! `wirefs-figures picture`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

/// Arguments of `picture`.
#[derive(Args)]
pub(super) struct PictureArguments {
    /// The tables of the bench
    #[arg(long, default_value = "docs/measurements/workloads.md")]
    from: PathBuf,
    /// The picture to write
    #[arg(long, default_value = "docs/pictures/distance.svg")]
    out: PathBuf,
}

/// Draws the picture of the README.
pub(super) fn run(arguments: &PictureArguments) -> Result<ExitCode> {
    let PictureArguments { from, out } = arguments;
    let text = std::fs::read_to_string(from).with_context(|| format!("cannot read {}", from.display()))?;
    std::fs::write(out, wirefs_figures::distance::picture(&text)?)
        .with_context(|| format!("cannot write {}", out.display()))?;
    println!("wrote {}", out.display());
    Ok(ExitCode::SUCCESS)
}
