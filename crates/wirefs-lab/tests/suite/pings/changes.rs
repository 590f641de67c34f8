//! Concurrent changes by programs on several nodes, and the check of their results.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use wirefs_virtual::Dice;

/// The number of files per node.
const FILES: u64 = 12;
/// The errors of a mount whose process has died, and of calls in progress at that time: ENOTCONN and ECONNABORTED.
const DEAD_MOUNT_ERRORS: [i32; 2] = [107, 103];

/// State shared by all programs.
#[derive(Default)]
pub(super) struct SharedFlags {
    stop: AtomicBool,
    /// The number of programs that hold the exclusive directory.
    holders: AtomicU32,
}

/// Stops the programs on drop, also after a panic.
pub(super) struct StopProgramsOnDrop<'a>(pub(super) &'a SharedFlags);

impl Drop for StopProgramsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

/// The changes of one node's program: for each of its files the set of possible contents.
#[derive(Debug)]
pub(super) struct ChangeLog {
    files: BTreeMap<String, Vec<Option<String>>>,
    pub(super) changes: u64,
    dice: Dice,
}

fn is_dead_mount_error(error: &std::io::Error) -> bool {
    error.raw_os_error().is_some_and(|number| DEAD_MOUNT_ERRORS.contains(&number))
}

/// Returns whether the node was killed. A call in progress may fail with EIO instead; the next call then shows it.
fn is_killed(at: &Path, error: &std::io::Error) -> bool {
    is_dead_mount_error(error) || fs::read_dir(at).is_err_and(|error| is_dead_mount_error(&error))
}

impl ChangeLog {
    pub(super) fn new(seed: u64) -> ChangeLog {
        ChangeLog { files: BTreeMap::new(), changes: 0, dice: Dice::new(seed) }
    }

    /// Changes own files and reads those of others, until the end or until the node is dead. `life` distinguishes the
    /// runs of one node.
    pub(super) fn run(&mut self, at: &Path, me: usize, life: u32, shared: &SharedFlags) {
        let temporary = at.join(format!("new-{me}"));
        while !shared.stop.load(Ordering::Relaxed) {
            let name = format!("file-{me}-{}", self.dice.below(FILES));
            let allowed = self.files.entry(name.clone()).or_insert_with(|| vec![None]);
            let is_removal = self.dice.below(4) == 0 && *allowed != [None];
            let text = format!("{name} {life} {}\n", self.changes).repeat(1 + self.dice.below(200) as usize);
            let wanted = (!is_removal).then_some(text);
            allowed.push(wanted.clone());
            let done = match &wanted {
                Some(text) => {
                    fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, at.join(&name)))
                }
                None => match fs::remove_file(at.join(&name)) {
                    // The file was removed by an earlier run that was killed.
                    Err(error) if error.kind() == ErrorKind::NotFound && allowed.contains(&None) => Ok(()),
                    done => done,
                },
            };
            match done {
                Ok(()) => *allowed = vec![wanted],
                Err(error) if is_killed(at, &error) => return,
                // S-126: less space is available while a node leaves or joins.
                Err(error) if error.kind() == ErrorKind::StorageFull => continue,
                Err(error) => panic!("node {me}: {name}: {error}"),
            }
            self.changes += 1;
            if !read_random_file(at, &mut self.dice) || !hold_exclusive_directory(at, shared) {
                return;
            }
        }
    }

    /// Asserts that each file has one of its possible contents.
    pub(super) fn check(&self, tree: &BTreeMap<String, String>) {
        for (name, allowed) in &self.files {
            let found = tree.get(name).cloned();
            assert!(allowed.contains(&found), "{name}: {found:?}, not {allowed:?}");
        }
    }
}

/// Reads a random file of any node and asserts that it is complete. Returns false if the node is dead.
fn read_random_file(at: &Path, dice: &mut Dice) -> bool {
    let names = match fs::read_dir(at) {
        Ok(entries) => entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()),
        Err(error) if is_killed(at, &error) => return false,
        Err(error) => panic!("a listing: {error}"),
    };
    let names: Vec<String> = names.filter(|name| name.starts_with("file")).collect();
    let Some(name) = names.get(dice.index(names.len())) else { return true };
    // Another node may replace the file during the read.
    let Ok(text) = fs::read_to_string(at.join(name)) else { return true };
    let mut lines: Vec<&str> = text.lines().collect();
    lines.dedup();
    assert!(
        lines.len() == 1 && lines[0].starts_with(&format!("{name} ")) && text.ends_with('\n'),
        "{name}: {text}"
    );
    true
}

/// Creates a directory that only one node can hold at a time. Returns false if the node is dead.
fn hold_exclusive_directory(at: &Path, shared: &SharedFlags) -> bool {
    let directory = at.join("only one");
    match fs::create_dir(&directory) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::StorageFull) => {
            return true;
        }
        Err(error) if is_killed(at, &error) => return false,
        Err(error) => panic!("a directory: {error}"),
    }
    assert_eq!(shared.holders.fetch_add(1, Ordering::SeqCst), 0, "two made the same directory");
    shared.holders.fetch_sub(1, Ordering::SeqCst);
    match fs::remove_dir(&directory) {
        Ok(()) => true,
        // The directory stays, and no node can create it again.
        Err(error) if error.kind() == ErrorKind::StorageFull => true,
        Err(error) if is_killed(at, &error) => false,
        Err(error) => panic!("a directory: {error}"),
    }
}

/// Returns the files of a tree, by name.
pub(super) fn contents(at: &Path) -> BTreeMap<String, String> {
    let names = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files = names.filter(|name| name.starts_with("file"));
    files.map(|name| (name.clone(), fs::read_to_string(at.join(&name)).unwrap())).collect()
}
