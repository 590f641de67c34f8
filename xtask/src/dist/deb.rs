//! The package of Debian, made by `dpkg-deb`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;

use crate::dist::command::Tool;
use crate::dist::machine::Machine;
use crate::dist::{PACKAGE, Release};

const SOURCES: &str = "packaging/debian";
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// The release notes in the package.
const NOTES: &str = "release-notes.md";
const KIB: u64 = 1024;

/// Makes the package of the staged files.
///
/// # Errors
/// Fails if a file cannot be written, or if gzip or dpkg-deb is missing or fails.
pub(super) fn make(release: &Release, machine: &Machine, staged: &Path) -> anyhow::Result<()> {
    let sources = release.root.join(SOURCES);
    let documents = staged.join("usr/share/doc").join(PACKAGE);
    fs::create_dir_all(&documents).context("cannot make the folder of documents")?;
    fs::copy(sources.join("copyright"), documents.join("copyright"))?;
    fs::copy(release.root.join("CHANGELOG.md"), documents.join(NOTES))?;
    fs::write(documents.join("changelog"), changelog(release, &sources)?)?;
    let overrides = staged.join("usr/share/lintian/overrides");
    fs::create_dir_all(&overrides).context("cannot make the folder of overrides")?;
    fs::copy(sources.join("lintian-overrides"), overrides.join(PACKAGE))?;
    // Debian's policy wants these compressed, without a time.
    let mut pages = vec![documents.join("changelog"), documents.join(NOTES)];
    for section in ["man1", "man8"] {
        let folder = staged.join("usr/share/man").join(section);
        for entry in fs::read_dir(folder).context("no manual pages are staged")? {
            pages.push(entry?.path());
        }
    }
    Tool::new(staged, "gzip").split_args("-9 -n --").args(pages).run()?;
    let completions = staged.join("usr/share/zsh");
    fs::rename(completions.join("site-functions"), completions.join("vendor-completions"))?;

    let control = staged.join("DEBIAN");
    fs::create_dir_all(&control)?;
    let template = fs::read_to_string(sources.join("control")).context("cannot read the control file")?;
    let size = bytes_below(&staged.join("usr"))?.div_ceil(KIB);
    fs::write(control.join("control"), fill(&template, &release.version, machine.debian, size))?;
    for script in SCRIPTS {
        fs::copy(sources.join(script), control.join(script))
            .with_context(|| format!("cannot copy {script}"))?;
        fs::set_permissions(control.join(script), fs::Permissions::from_mode(0o755))?;
    }
    let name = format!("{PACKAGE}_{}_{}.deb", release.version, machine.debian);
    Tool::new(&release.root, "chmod").split_args("-R go=rX,u+rw").args([staged]).run()?;
    Tool::new(&release.root, "dpkg-deb")
        .split_args("--root-owner-group --uniform-compression --threads-max=1 -Zxz -z9 --build")
        .args([staged.as_os_str(), release.out.join(name).as_os_str()])
        .set("SOURCE_DATE_EPOCH", &release.epoch)
        .run()
}

/// Returns the changelog in Debian's format, which names the release notes.
fn changelog(release: &Release, sources: &Path) -> anyhow::Result<String> {
    let template = fs::read_to_string(sources.join("changelog")).context("cannot read the changelog")?;
    let time = format!("--date=@{}", release.epoch);
    let date = Tool::new(&release.root, "date").split_args("--utc --rfc-email").args([time]).read()?;
    Ok(template.replace("@VERSION@", &release.version).replace("@DATE@", date.trim()))
}

/// Fills in the control file.
pub(super) fn fill(template: &str, version: &str, architecture: &str, size_kib: u64) -> String {
    template
        .replace("@VERSION@", version)
        .replace("@ARCHITECTURE@", architecture)
        .replace("@SIZE@", &size_kib.to_string())
}

fn bytes_below(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => bytes_below(&entry.path())?,
            // A symbolic link counts by itself.
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}
