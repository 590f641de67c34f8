//! `cargo xtask dist`: static programs, packages, checksums and a bill of materials, the same bytes for the same commit.
//!
//! *Holds*: the result depends on the commit and the version of the compiler only. Paths of this machine are remapped,
//! and all times are the time of the commit.
//!
//! *Never*: installs or publishes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::dist::command::Tool;
use crate::dist::machine::Machine;

mod archive;
mod bill;
mod command;
mod deb;
mod machine;
mod notes;
#[cfg(test)]
mod tests;

/// The package that is distributed, and its main program.
const PACKAGE: &str = "wirefs";
/// All programs that it has: those of the crates of these names.
const PROGRAMS: [&str; 3] = [PACKAGE, "wirefs-gate", "wirefs-grpc"];

/// The commit that is packaged, and the folders for it.
struct Release {
    /// The repository.
    root: PathBuf,
    /// The folder of the result.
    out: PathBuf,
    /// The version in the workspace manifest.
    version: String,
    /// Seconds since 1970 of the commit: the time of all packaged files.
    epoch: String,
}

/// Builds and packages the current commit for the named machines; for all, if none is named.
///
/// # Errors
/// A machine is unknown, a tool is missing, or a build fails.
pub(crate) fn run(root: &Path, names: &[String]) -> anyhow::Result<()> {
    let machines = Machine::named(names)?;
    let release = Release::open(root)?;
    // A machine without its compiler fails before the others are built.
    for machine in &machines {
        machine.require()?;
    }
    for machine in &machines {
        machine.build(&release)?;
    }
    let host = Machine::host()?;
    if !machines.iter().any(|machine| machine.name == host.name) {
        host.build(&release)?;
    }
    for machine in &machines {
        let program = machine.program(root);
        fs::copy(&program, release.out.join(machine.program_name()))
            .with_context(|| format!("cannot copy {}", program.display()))?;
        let staged = release.stage(machine, host)?;
        archive::make(&release, machine, &staged)?;
        deb::make(&release, machine, &staged)?;
    }
    bill::make(&release)?;
    notes::make(&release)?;
    fs::copy(root.join("packaging/Containerfile"), release.out.join("Containerfile"))?;
    release.checksums()?;
    release.report()
}

impl Release {
    fn open(root: &Path) -> anyhow::Result<Release> {
        let manifest = fs::read_to_string(root.join("Cargo.toml")).context("cannot read Cargo.toml")?;
        let version = version_of(&manifest)?;
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => Tool::new(root, "git").split_args("log -1 --format=%ct").read().context(
                "the time of the commit is unknown: run this in a clone, or set SOURCE_DATE_EPOCH",
            )?,
        };
        let epoch = epoch.trim().to_owned();
        if epoch.parse::<u64>().is_err() {
            bail!("SOURCE_DATE_EPOCH is {epoch:?}; set it to seconds since 1970");
        }
        let out = root.join("target/dist/out");
        if out.exists() {
            fs::remove_dir_all(&out).context("cannot remove the last result")?;
        }
        fs::create_dir_all(&out).context("cannot make target/dist/out")?;
        Ok(Release { root: root.to_owned(), out, version, epoch })
    }

    /// Installs the programs of a machine and their files below a folder, as `make install` does.
    fn stage(&self, machine: &Machine, host: &Machine) -> anyhow::Result<PathBuf> {
        let staged = self.root.join(format!("target/dist/stage-{}", machine.name));
        if staged.exists() {
            fs::remove_dir_all(&staged).context("cannot remove the last stage")?;
        }
        let install = Tool::new(&self.root, "scripts/install")
            .set("PREFIX", "/usr")
            .set("DESTDIR", &staged)
            .set("BINARY", machine.program(&self.root))
            .set("HOST", host.program(&self.root));
        install.run()?;
        if let Some(missing) = PROGRAMS.iter().find(|name| !staged.join("usr/bin").join(name).is_file()) {
            bail!("scripts/install did not install {missing}");
        }
        Ok(staged)
    }

    /// Writes the checksums of all files of the result.
    fn checksums(&self) -> anyhow::Result<()> {
        let mut names = self.names()?;
        names.retain(|name| name != "SHA256SUMS");
        let sums = Tool::new(&self.out, "sha256sum").split_args("--").args(names).read()?;
        fs::write(self.out.join("SHA256SUMS"), sums).context("cannot write SHA256SUMS")
    }

    fn report(&self) -> anyhow::Result<()> {
        for name in self.names()? {
            let bytes = fs::metadata(self.out.join(&name))?.len();
            println!("{bytes:>10}  {}", self.out.join(name).display());
        }
        Ok(())
    }

    /// Returns the names of all files of the result, ordered.
    fn names(&self) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.out).context("cannot list target/dist/out")? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }
}

/// Returns the version of the workspace.
fn version_of(manifest: &str) -> anyhow::Result<String> {
    let manifest: toml::Table = manifest.parse().context("Cargo.toml is not valid TOML")?;
    let package = manifest.get("workspace").and_then(|workspace| workspace.get("package"));
    let version = package.and_then(|package| package.get("version")).and_then(toml::Value::as_str);
    Ok(version.context("Cargo.toml has no workspace.package.version")?.to_owned())
}
