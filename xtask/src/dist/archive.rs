//! The archive for systems without dpkg.

use std::path::Path;

use crate::dist::command::Tool;
use crate::dist::machine::Machine;
use crate::dist::{PACKAGE, Release};

/// Packs the staged files, for `tar -C / -xf`.
///
/// # Errors
/// Fails if tar or xz is missing or fails.
pub(super) fn make(release: &Release, machine: &Machine, staged: &Path) -> anyhow::Result<()> {
    let name = format!("{PACKAGE}-{}-{}-linux-musl.tar.xz", release.version, machine.name);
    Tool::new(staged, "tar")
        .split_args(
            "--create --sort=name --owner=0 --group=0 --numeric-owner --format=gnu --mode=go=rX,u+rw,a-s",
        )
        .args([format!("--mtime=@{}", release.epoch), "--use-compress-program=xz -9 -T1".into()])
        .arg_path("--file", &release.out.join(name))
        .split_args("usr")
        .run()
}
