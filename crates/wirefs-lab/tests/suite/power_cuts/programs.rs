//! Real programs that work in rounds: tar, sqlite, git.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use super::{LOOKS, Progress, Work};
use crate::site::Site;
use crate::snapshot::Snapshot;

/// The database's file.
pub(super) const DATABASE: &str = "database";
/// Trees out of archives that are kept: older ones are removed.
const TREES: u64 = 3;

/// An archive: files of several sizes and modes, links of both kinds.
const PREPARE: &str = r#"
mkdir tree
for dir in 1 2 3 4 5 6; do
    mkdir -p tree/d$dir/sub
    for file in 1 2 3 4 5 6 7 8 9; do
        head -c $((file * file * dir * 300)) /dev/zero | tr '\0' $file >tree/d$dir/f$file
    done
    chmod 600 tree/d$dir/f3
    chmod 755 tree/d$dir/f4
    ln tree/d$dir/f1 tree/d$dir/sub/hard
    ln -s ../f2 tree/d$dir/sub/soft
done
tar -cf tree.tar tree
"#;
const UNTAR: &str = r#"
rm -rf "$TO/tree$OLD"
mkdir "$TO/tree$ROUND"
tar -xf tree.tar -C "$TO/tree$ROUND"
if [ "$SYNCS" = 1 ]; then
    find "$TO/tree$ROUND" -exec sync {} +
    sync "$TO"
fi
"#;
/// `synchronous=extra` also syncs the directory that the rollback journal was removed from.
const SQLITE: &str = r#"
case $PERSIST$((ROUND % 3)) in 00) mode=delete ;; 01) mode=truncate ;; *) mode=persist ;; esac
sqlite3 -bail "$TO/database" "PRAGMA journal_mode=$mode; PRAGMA synchronous=extra;
    CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, text);
    BEGIN; INSERT INTO t VALUES($ROUND, 'row $ROUND'); UPDATE t SET text = text || ' $ROUND' WHERE id = $ROUND / 2; COMMIT;"
"#;
/// A shell truncates each file, writes it in pieces, and closes it.
const REWRITE: &str = r#"
mkdir -p "$TO/files"
for file in 1 2 3 4 5 6 7 8 9 10 11 12; do
    yes "round $ROUND, file $file" | head -c $((file * file * 1500 + ROUND * file * 977 % 5000)) >"$TO/files/f$file"
done
if [ "$SYNCS" = 1 ]; then
    sync "$TO"/files/* "$TO/files" "$TO"
fi
"#;
const GIT: &str = r#"
mkdir -p "$TO/repo"
cd "$TO/repo"
[ "$ROUND" != 1 ] || git init -q
mkdir -p "d$((ROUND % 7))"
for file in 1 2 3; do
    head -c $((ROUND * file * 37 % 9000)) /dev/zero | tr '\0' "$file" >"d$((ROUND % 7))/f$((ROUND * file % 40))"
done
[ ! -e "d$((ROUND % 5))" ] || git mv -k "d$((ROUND % 5))" "moved$((ROUND % 3))"
git add -A
git commit -q --allow-empty -m "$ROUND"
[ $((ROUND % 4)) != 0 ] || git branch "branch$ROUND"
[ $((ROUND % 6)) != 0 ] || git pack-refs --all
[ $((ROUND % 8)) != 0 ] || git repack -a -d -q
git fsck --no-progress --connectivity-only
if [ "$SYNCS" = 1 ]; then
    find .git -exec sync {} +
    sync "$TO" "$TO/repo"
fi
"#;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Program {
    Untar,
    Sqlite,
    /// All transactions with one rollback journal, which is never truncated or removed.
    SqlitePersist,
    Git,
    Rewrite,
}

/// Rounds of one program, without end.
pub(super) struct Programs {
    program: Program,
    /// The archive and its contents, for all programs.
    materials: PathBuf,
    mount: PathBuf,
    reference: PathBuf,
    /// Rounds whose results are synced.
    synced: Mutex<BTreeSet<u64>>,
}

impl Programs {
    pub(super) fn new(program: Program, mount: &Path, reference: &Path, site: &Site) -> Programs {
        let materials = site.path("materials");
        fs::create_dir(&materials).unwrap();
        sh(&materials, PREPARE, &[]);
        let (mount, reference) = (mount.to_owned(), reference.to_owned());
        Programs { program, materials, mount, reference, synced: Mutex::default() }
    }

    fn round(&self, round: u64) {
        let (script, syncs) = match self.program {
            Program::Untar => (UNTAR, round.is_multiple_of(3)),
            Program::Sqlite | Program::SqlitePersist => (SQLITE, true),
            Program::Git => (GIT, round.is_multiple_of(3)),
            Program::Rewrite => (REWRITE, round.is_multiple_of(3)),
        };
        let old = round.saturating_sub(TREES);
        if matches!(self.program, Program::Untar) {
            self.synced.lock().unwrap().remove(&old);
        }
        if matches!(self.program, Program::Rewrite) {
            self.synced.lock().unwrap().clear();
        }
        for to in [&self.mount, &self.reference] {
            let to = to.to_str().unwrap();
            let (round, old, syncs) = (round.to_string(), old.to_string(), u8::from(syncs).to_string());
            let persist = u8::from(matches!(self.program, Program::SqlitePersist)).to_string();
            let numbers = [("ROUND", &*round), ("OLD", &old), ("SYNCS", &syncs), ("PERSIST", &persist)];
            sh(&self.materials, script, &[&[("TO", to)], &numbers[..]].concat());
        }
        if syncs {
            self.synced.lock().unwrap().insert(round);
        }
    }

    /// A copy of something on the disk, which programs may change when they look at it.
    fn copy(&self, from: &Path) -> PathBuf {
        let copy = self.materials.join("copy");
        let (from, to) = (from.to_str().unwrap(), copy.to_str().unwrap());
        sh(
            &self.materials,
            r#"rm -rf "$COPY"; mkdir "$COPY"; cp -a "$FROM/." "$COPY""#,
            &[("FROM", from), ("COPY", to)],
        );
        copy
    }

    /// The files that a round of [`Program::Rewrite`] leaves.
    fn rewritten(&self, round: u64) -> Snapshot {
        let (to, round) = (self.materials.join("rewritten"), round.to_string());
        let to = to.to_str().unwrap();
        sh(&self.materials, REWRITE, &[("TO", to), ("ROUND", &round), ("SYNCS", "0")]);
        Snapshot::of(&Path::new(to).join("files"), LOOKS)
    }

    /// The rounds whose results are on the disk, as lines.
    fn on_disk(&self, disk: &Path) -> String {
        let copy = self.copy(disk);
        match self.program {
            Program::Untar | Program::Rewrite => String::new(),
            Program::Sqlite | Program::SqlitePersist => rows(&copy),
            Program::Git => {
                sh(&copy, "git -C repo log --format=%s HEAD && git -C repo fsck --no-progress", &[])
            }
        }
    }
}

impl Work for Programs {
    type Promises = BTreeSet<u64>;

    fn run(&self, progress: &Progress) {
        while let Some(number) = progress.next_step() {
            self.round(number + 1);
        }
    }

    fn promises(&self) -> BTreeSet<u64> {
        self.synced.lock().unwrap().clone()
    }

    fn missing(&self, before: &BTreeSet<u64>, after: &BTreeSet<u64>, disk: &Path) -> Vec<String> {
        let mut promised = before.intersection(after).peekable();
        if promised.peek().is_none() {
            return Vec::new();
        }
        if matches!(self.program, Program::Untar) {
            let archived = Snapshot::of(&self.materials.join("tree"), LOOKS);
            let has = |tree: &String| {
                let tree = disk.join(tree);
                tree.exists() && Snapshot::of(&tree, LOOKS) == archived
            };
            return promised.map(|round| format!("tree{round}/tree")).filter(|tree| !has(tree)).collect();
        }
        if matches!(self.program, Program::Rewrite) {
            let has = |round: &&u64| {
                let expected = self.rewritten(**round);
                let files = disk.join("files");
                files.exists() && Snapshot::of(&files, LOOKS) == expected
            };
            return promised.filter(|round| !has(round)).map(|round| format!("files of {round}")).collect();
        }
        let found = self.on_disk(disk);
        let has = |round: &&u64| {
            let (word, row) = (round.to_string(), format!("{round}|"));
            found.lines().any(|line| line == word || line.starts_with(&row))
        };
        promised.filter(|round| !has(round)).map(|round| format!("round {round}")).collect()
    }
}

/// All rows of the database, where there is one.
pub(super) fn rows(root: &Path) -> String {
    let is_there = root.join(DATABASE).exists();
    if is_there {
        sh(root, r#"sqlite3 -bail database "SELECT * FROM t ORDER BY id;""#, &[])
    } else {
        String::new()
    }
}

/// The output of a script that must succeed.
#[track_caller]
fn sh(directory: &Path, script: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new("sh");
    command.args(["-e", "-u", "-c", script]).current_dir(directory).stdin(Stdio::null());
    command.env("HOME", directory).env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
    for person in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{person}_NAME"), "power").env(format!("GIT_{person}_EMAIL"), "power");
        command.env(format!("GIT_{person}_DATE"), "1700000000 +0000");
    }
    // The same objects and packs in both trees, and everything synced that git can sync.
    let settings =
        [("core.fsync", "all"), ("pack.threads", "1"), ("gc.auto", "0"), ("maintenance.auto", "false")];
    command.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (number, (key, value)) in settings.into_iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{number}"), key).env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    let ran = command.envs(variables.iter().copied()).output().unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{script}\nwith {variables:?}: {}, {errors}", ran.status);
    String::from_utf8_lossy(&ran.stdout).into_owned()
}
