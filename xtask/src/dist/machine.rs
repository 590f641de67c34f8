//! The machines that programs are built for.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::dist::command::Tool;
use crate::dist::{PACKAGE, PROGRAMS, Release};

/// One kind of machine.
#[derive(Debug)]
pub(super) struct Machine {
    /// As `uname -m` prints it.
    pub(super) name: &'static str,
    /// The name of Debian.
    pub(super) debian: &'static str,
    /// The C compiler of `ring`, which is the linker too.
    compiler: &'static str,
}

const MUSL_GCC: &str = "musl-gcc";
const MACHINES: [Machine; 2] = [
    Machine { name: "x86_64", debian: "amd64", compiler: MUSL_GCC },
    // No header of libc is used, so the compiler for glibc fits.
    Machine { name: "aarch64", debian: "arm64", compiler: "aarch64-linux-gnu-gcc" },
];

impl Machine {
    /// Returns the machines with these names; all, if there is none.
    pub(super) fn named(names: &[String]) -> anyhow::Result<Vec<&'static Machine>> {
        if let Some(unknown) =
            names.iter().find(|name| !MACHINES.iter().any(|machine| machine.name == **name))
        {
            bail!("unknown machine {unknown:?}; name x86_64, aarch64, or none for both");
        }
        let is_wanted =
            |machine: &&Machine| names.is_empty() || names.iter().any(|name| name == machine.name);
        Ok(MACHINES.iter().filter(is_wanted).collect())
    }

    /// Returns this machine, whose program prints manual pages and completions.
    pub(super) fn host() -> anyhow::Result<&'static Machine> {
        let host = MACHINES.iter().find(|machine| machine.name == std::env::consts::ARCH);
        host.with_context(|| format!("cannot package on {}; use x86_64 or aarch64", std::env::consts::ARCH))
    }

    /// Checks that the compilers are installed.
    pub(super) fn require(&self) -> anyhow::Result<()> {
        let here = Path::new(".");
        let rust =
            Tool::new(here, "rustc").args(["--print", "target-libdir", "--target", &self.target()]).read()?;
        if !Path::new(rust.trim()).is_dir() {
            bail!("Rust for {0} is not installed: rustup target add {0}", self.target());
        }
        Tool::new(here, self.compiler).split_args("-dumpversion").read().map(drop)
    }

    /// Builds the static programs.
    pub(super) fn build(&self, release: &Release) -> anyhow::Result<()> {
        let target = self.target();
        let (variable, root) = (target.replace('-', "_"), &release.root);
        let packages = PROGRAMS.iter().flat_map(|name| ["--package", name]);
        let mut cargo = Tool::new(root, "cargo")
            .args(["build", "--release", "--locked", "--target", &target])
            .args(packages)
            .arg_path("--target-dir", &root.join("target/dist/build"))
            .set("CARGO_ENCODED_RUSTFLAGS", flags(root)?.join("\u{1f}"))
            .set("SOURCE_DATE_EPOCH", &release.epoch);
        // Cargo finds musl-gcc by itself.
        if self.compiler != MUSL_GCC {
            cargo = cargo
                .set(&format!("CC_{variable}"), self.compiler)
                .set(&format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()), self.compiler);
        }
        cargo.run()
    }

    /// Returns the path of the built main program. The others are beside it.
    pub(super) fn program(&self, root: &Path) -> PathBuf {
        root.join("target/dist/build").join(self.target()).join("release").join(PACKAGE)
    }

    /// Returns the name by which wirefs finds the program, to copy it to a host without wirefs.
    pub(super) fn program_name(&self) -> String {
        format!("{PACKAGE}-{}-linux-musl", self.name)
    }

    fn target(&self) -> String {
        format!("{}-unknown-linux-musl", self.name)
    }
}

/// Returns the flags that replace the paths of this machine, which panic messages would contain.
fn flags(root: &Path) -> anyhow::Result<Vec<String>> {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    let cargo = cargo.context("neither CARGO_HOME nor HOME is set; set one")?;
    let flag = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    Ok(vec![flag(&cargo, "/cargo"), flag(root, "/wirefs")])
}
