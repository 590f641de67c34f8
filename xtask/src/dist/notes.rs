//! The notes of a release.

use std::fs;

use anyhow::Context;

use crate::dist::Release;

const PAGE: &str = "CHANGELOG.md";

/// Writes the section of this version in the changelog.
///
/// # Errors
/// Fails if the changelog has no such section.
pub(super) fn make(release: &Release) -> anyhow::Result<()> {
    let page = fs::read_to_string(release.root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let notes = section(&page, &release.version)
        .with_context(|| format!("{PAGE} has no section `## {}`; add it", release.version))?;
    fs::write(release.out.join("RELEASE-NOTES.md"), notes).context("cannot write the notes")
}

/// Returns the section of a version, without its heading.
pub(super) fn section(page: &str, version: &str) -> Option<String> {
    let is_heading = |line: &&str| {
        let title = line.strip_prefix("## ").unwrap_or_default();
        title.split([',', ' ']).next() == Some(version)
    };
    let mut lines = page.lines().skip_while(|line| !is_heading(line));
    lines.next()?;
    let body: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    Some(format!("{}\n", body.join("\n").trim()))
}
