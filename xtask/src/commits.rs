//! `cargo xtask commits`: the subjects of commits, held against the rules of CONTRIBUTING.md.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::finding::Finding;

#[cfg(test)]
mod tests;

/// Subjects up to this commit are older than the rules.
const OLDER: &str = "6e5e44c";
const COLUMNS_MAX: usize = 72;
/// Words that an imperative sentence does not begin with.
const NO_VERBS: [&str; 24] = [
    "a", "all", "an", "and", "both", "by", "each", "for", "from", "how", "in", "it", "no", "of", "on", "one",
    "only", "the", "to", "what", "where", "which", "who", "with",
];
/// Verbs that end as others do in their third person, participle or gerund.
const VERBS: [&str; 13] = [
    "access", "address", "bring", "bypass", "compress", "discuss", "embed", "feed", "focus", "need", "pass",
    "process", "speed",
];

/// Checks the commits of the current branch that are newer than the rules.
///
/// # Errors
/// `git` cannot be run, or this is no clone of the repository.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let range = format!("{OLDER}..HEAD");
    let output = Command::new("git")
        .current_dir(root)
        .args(["log", "--no-merges", "--format=%h %s", &range])
        .output()
        .context("cannot run git")?;
    if !output.status.success() {
        bail!("git log {range}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let log = String::from_utf8_lossy(&output.stdout);
    Ok(log
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(id, subject)| finding(id, subject))
        .collect())
}

fn finding(id: &str, subject: &str) -> Option<Finding> {
    let message = fault(subject)?;
    Some(Finding::error(id, 1, format!("{message}: {subject}"), "git rebase -i, and reword it"))
}

/// The first rule that a subject breaks.
fn fault(subject: &str) -> Option<String> {
    let columns = subject.chars().count();
    if columns > COLUMNS_MAX {
        return Some(format!("a subject of {columns} columns, of at most {COLUMNS_MAX}"));
    }
    let Some((_, sentence)) = subject.split_once(": ") else {
        return Some("a subject without an area before a colon".into());
    };
    let verb = sentence.split(' ').next().unwrap_or_default();
    (!is_imperative(verb)).then(|| format!("{verb:?} is no verb in the imperative"))
}

fn is_imperative(word: &str) -> bool {
    let is_plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let is_bent = ["s", "ed", "ing"].iter().any(|ending| word.ends_with(ending));
    is_plain && !NO_VERBS.contains(&word) && (!is_bent || VERBS.contains(&word))
}
