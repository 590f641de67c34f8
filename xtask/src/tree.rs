//! The files of the repository, read once for all checks.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::rust::RustFile;

/// Folders that are made, not written. (`.git` is a file in a linked worktree.)
const SKIPPED: [&str; 3] = [".git", "target", "try"];

/// One file.
pub(crate) struct SourceFile {
    /// The path from the root, with `/` as separator.
    pub(crate) path: String,
    /// The size in bytes.
    pub(crate) bytes: u64,
    /// The text; empty if it is not UTF-8.
    pub(crate) text: String,
}

/// All files of the repository; Rust files are parsed too.
#[derive(Default)]
pub(crate) struct Tree {
    /// All files, ordered by path.
    pub(crate) files: Vec<SourceFile>,
    /// The `.rs` files among them.
    pub(crate) rust: Vec<RustFile>,
}

impl Tree {
    /// Reads all files below `root`, except generated ones.
    ///
    /// # Errors
    /// Fails if a folder or file cannot be read.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Tree> {
        let mut files = Vec::new();
        read_folder(root, "", &mut files)?;
        Ok(Tree::new(files))
    }

    /// Returns a tree in memory.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        let file = |&(path, text): &(&str, &str)| SourceFile {
            path: path.into(),
            bytes: text.len() as u64,
            text: text.into(),
        };
        Tree::new(files.iter().map(file).collect())
    }

    fn new(mut files: Vec<SourceFile>) -> Tree {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut rust: Vec<RustFile> = files
            .iter()
            .filter(|file| file.path.ends_with(".rs"))
            .map(|file| RustFile::new(&file.path, &file.text))
            .collect();
        RustFile::mark_test_modules(&mut rust);
        Tree { files, rust }
    }

    /// Returns the file at `path`, if it exists.
    pub(crate) fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

fn read_folder(folder: &Path, prefix: &str, files: &mut Vec<SourceFile>) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if kind.is_dir() {
            read_folder(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() {
            let content = fs::read(entry.path()).with_context(|| format!("cannot read {path}"))?;
            let bytes = content.len() as u64;
            files.push(SourceFile { path, bytes, text: String::from_utf8(content).unwrap_or_default() });
        }
    }
    Ok(())
}
