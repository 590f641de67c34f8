//! What programs on several nodes change at the same time, and what of it must be there at the end.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Files of each node.
const FILES: u64 = 12;
/// What the kernel says of a mount whose process is gone, and of calls that it had then.
const ENDS: [i32; 2] = [107, 103];

/// What all programs know of each other.
#[derive(Default)]
pub(super) struct Common {
    is_over: AtomicBool,
    /// Who has made the directory that only one can make.
    holders: AtomicU32,
}

/// Ends the programs when it goes, also where a test fails.
pub(super) struct End<'a>(pub(super) &'a Common);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

/// What one node's program did: of each of its files what it may hold.
#[derive(Debug)]
pub(super) struct Log {
    files: BTreeMap<String, Vec<Option<String>>>,
    pub(super) changes: u64,
    seed: u64,
}

/// The next number that follows from a seed.
fn roll(seed: &mut u64, below: u64) -> u64 {
    // Splitmix64.
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % below
}

fn is_end(error: &std::io::Error) -> bool {
    error.raw_os_error().is_some_and(|number| ENDS.contains(&number))
}

/// Whether this is what a program sees of a node that was killed. What was under way then may end otherwise, with EIO: the next call tells.
fn is_killed(at: &Path, error: &std::io::Error) -> bool {
    is_end(error) || fs::read_dir(at).is_err_and(|error| is_end(&error))
}

impl Log {
    pub(super) fn new(seed: u64) -> Log {
        Log { files: BTreeMap::new(), changes: 0, seed }
    }

    /// Changes own files, and looks at what others change, until it is over or the node is dead. `life` tells the runs of one node
    /// apart.
    pub(super) fn run(&mut self, at: &Path, me: usize, life: u32, common: &Common) {
        let temporary = at.join(format!("new-{me}"));
        while !common.is_over.load(Ordering::Relaxed) {
            let name = format!("file-{me}-{}", roll(&mut self.seed, FILES));
            let allowed = self.files.entry(name.clone()).or_insert_with(|| vec![None]);
            let is_removal = roll(&mut self.seed, 4) == 0 && *allowed != [None];
            let text =
                format!("{name} {life} {}\n", self.changes).repeat(1 + roll(&mut self.seed, 200) as usize);
            let wanted = (!is_removal).then_some(text);
            allowed.push(wanted.clone());
            let done = match &wanted {
                Some(text) => {
                    fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, at.join(&name)))
                }
                None => match fs::remove_file(at.join(&name)) {
                    // It was removed when the node that did it was killed.
                    Err(error) if error.kind() == ErrorKind::NotFound && allowed.contains(&None) => Ok(()),
                    done => done,
                },
            };
            match done {
                Ok(()) => *allowed = vec![wanted],
                Err(error) if is_killed(at, &error) => return,
                // S-132: there is less room while a node goes or comes.
                Err(error) if error.kind() == ErrorKind::StorageFull => continue,
                Err(error) => panic!("node {me}: {name}: {error}"),
            }
            self.changes += 1;
            if !look(at, &mut self.seed) || !exclude(at, common) {
                return;
            }
        }
    }

    /// All that was answered is there, and nothing else.
    pub(super) fn check(&self, tree: &BTreeMap<String, String>) {
        for (name, allowed) in &self.files {
            let found = tree.get(name).cloned();
            assert!(allowed.contains(&found), "{name}: {found:?}, not {allowed:?}");
        }
    }
}

/// Reads some file that somebody has written: it is whole. False when the node is dead.
fn look(at: &Path, seed: &mut u64) -> bool {
    let names = match fs::read_dir(at) {
        Ok(entries) => entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()),
        Err(error) if is_killed(at, &error) => return false,
        Err(error) => panic!("a listing: {error}"),
    };
    let names: Vec<String> = names.filter(|name| name.starts_with("file")).collect();
    let Some(name) = names.get(roll(seed, names.len().max(1) as u64) as usize) else { return true };
    // It may have been replaced by another node while it was read.
    let Ok(text) = fs::read_to_string(at.join(name)) else { return true };
    let mut lines: Vec<&str> = text.lines().collect();
    lines.dedup();
    assert!(
        lines.len() == 1 && lines[0].starts_with(&format!("{name} ")) && text.ends_with('\n'),
        "{name}: {text}"
    );
    true
}

/// Makes a directory that only one can make at a time. False when the node is dead.
fn exclude(at: &Path, common: &Common) -> bool {
    let place = at.join("only one");
    match fs::create_dir(&place) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::StorageFull) => {
            return true;
        }
        Err(error) if is_killed(at, &error) => return false,
        Err(error) => panic!("a directory: {error}"),
    }
    assert_eq!(common.holders.fetch_add(1, Ordering::SeqCst), 0, "two made the same directory");
    common.holders.fetch_sub(1, Ordering::SeqCst);
    match fs::remove_dir(&place) {
        Ok(()) => true,
        // It stays, and nobody makes another one.
        Err(error) if error.kind() == ErrorKind::StorageFull => true,
        Err(error) if is_killed(at, &error) => false,
        Err(error) => panic!("a directory: {error}"),
    }
}

/// The files of a tree, by their names.
pub(super) fn contents(at: &Path) -> BTreeMap<String, String> {
    let names = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files = names.filter(|name| name.starts_with("file"));
    files.map(|name| (name.clone(), fs::read_to_string(at.join(&name)).unwrap())).collect()
}
