//! Checks of this repository, run as `cargo xtask layers`, `cargo xtask tidy` and `cargo xtask metrics`, and its packages,
//! made by `cargo xtask dist`.
//!
//! *Holds*: a check reads the repository and reports; it changes nothing. All findings are reported at once, each with
//! its fix. `dist` writes below `target/dist` only.
//!
//! *Never*: shipped.
//!
//! *Proved by*: unit tests that plant one violation per rule and expect its finding.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::finding::Finding;
use crate::tree::Tree;

mod commits;
mod dist;
mod finding;
mod layers;
mod metrics;
mod rust;
mod tidy;
mod tree;

const USAGE: &str = "\
usage: cargo xtask CHECK...
  layers    each dependency is one that the crate table in ARCHITECTURE.md allows
  tidy      sizes, names, panics, tests, documents, ids and words follow the rules of CONTRIBUTING.md
  commits   subjects of new commits are imperative, have an area, and at most 72 columns
  metrics   the figures of this code base
usage: cargo xtask dist [MACHINE...]
  packages of this commit into target/dist, for x86_64 and aarch64 unless named";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let checks: Vec<String> = std::env::args().skip(1).collect();
    if checks.is_empty() {
        bail!("no check named\n{USAGE}");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent folder")?;
    if let Some((command, machines)) = checks.split_first()
        && command == "dist"
    {
        dist::run(root, machines)?;
        return Ok(ExitCode::SUCCESS);
    }
    let tree = Tree::read(root)?;
    let mut findings = Vec::new();
    for check in &checks {
        match check.as_str() {
            "layers" => findings.extend(layers::check(&tree)?),
            "tidy" => findings.extend(tidy::check(&tree)),
            "commits" => findings.extend(commits::check(root)?),
            "metrics" => print!("{}", metrics::table(&tree)),
            unknown => bail!("unknown check {unknown:?}\n{USAGE}"),
        }
    }
    Ok(report(findings, &checks.join(" ")))
}

fn report(mut findings: Vec<Finding>, checks: &str) -> ExitCode {
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    let errors = findings.iter().filter(|finding| finding.is_error()).count();
    let warnings = findings.len() - errors;
    println!("xtask {checks}: {errors} errors, {warnings} warnings");
    if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
