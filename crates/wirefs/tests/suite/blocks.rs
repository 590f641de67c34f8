//! Block trees, mounted in one process or exported, and their checkpoints.

use std::path::Path;
use std::process::Command;

use wirefs_model::run_posix;

use crate::home::{SecondMount, TestHome, wait_for};
use crate::semantics::Tmpfs;

const MEMORY: &str = "blocks+memory:";

/// Runs a shell script in a directory, and returns its output.
fn script(dir: &Path, text: &str) -> String {
    let output = Command::new("sh").args(["-euc", text]).current_dir(dir).env("HOME", dir).output().unwrap();
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", shown(&output.stdout), shown(&output.stderr));
    shown(&output.stdout)
}

/// Runs real programs, and prints the results.
const PROGRAMS: &str = r#"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_AUTHOR_DATE=@1700000000+0000 GIT_COMMITTER_DATE=@1700000000+0000
git init -q -b main repo && cd repo
mkdir src
for n in 1 2 3 4 5 6 7 8; do printf 'int f%s(void) { return %s; }\n' $n $n > src/f$n.c; done
printf 'OBJS = $(patsubst %%.c,%%.o,$(wildcard src/*.c))\nall.a: $(OBJS)\n\tar rcD $@ $(OBJS)\n' > Makefile
printf '*.o\n*.a\n' > .gitignore
git add . && git commit -q -m one
make -s && make -s -q
ar t all.a
touch -d '+2 seconds' src/f3.c && ! make -s -q
git mv src/f8.c src/g.c && echo more >> Makefile && git commit -q -a -m two
git gc -q && git fsck --strict && git log --format=%H%n%s && git status --porcelain
git checkout -q HEAD~1 && ls src/*.c && git checkout -q main
cd ..
sqlite3 db 'create table t(a integer primary key, b); pragma journal_mode=wal;'
for n in 1 2 3; do sqlite3 db "insert into t(b) select hex(zeroblob(2000)) from (values(1),(2),(3),(4));"; done
sqlite3 db 'delete from t where a % 3 = 0; vacuum; pragma integrity_check; select count(*), sum(length(b)) from t;'
find . -name '*.pack' | wc -l
rm -rf repo && ls
"#;

#[test]
fn programs_behave_on_a_block_tree_as_on_a_local_disk() {
    let home = TestHome::new();
    home.wirefs(&["mount", MEMORY, "mnt"]).succeeds();
    let local = script(&home.path("export"), PROGRAMS);
    let there = script(&home.path("mnt"), PROGRAMS);
    assert_eq!(there, local);
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn random_operations_on_mounts_of_a_block_tree_match_the_model() {
    let home = TestHome::new();
    let _server = home.serve_source(MEMORY, &["--listen", &home.url()]);
    // These modes cache next to nothing, so that each operation reaches the tree.
    home.wirefs(&["mount", "--mode", "strict", &home.url(), "mnt"]).succeeds();
    let _second = SecondMount::mount(&home, "strict");
    for seed in 0..3 {
        // The second run uses two clients.
        let names = if seed == 1 { &["mnt", "other"][..] } else { &["mnt"] };
        let run = format!("run{seed}");
        std::fs::create_dir(home.path("mnt").join(&run)).unwrap();
        let paths: Vec<_> = names.iter().map(|name| home.path(name).join(&run)).collect();
        let paths: Vec<&Path> = paths.iter().map(|path| path.as_path()).collect();
        run_posix(seed, 600, &paths).unwrap_or_else(|mismatch| panic!("{mismatch}"));
    }
}

#[test]
fn block_tree_in_a_directory_is_persistent() {
    let home = TestHome::new();
    let source = format!("blocks://{}", home.text("store"));
    home.wirefs(&["mount", &source, "mnt"]).succeeds();
    home.write("mnt/dir/file", "content");
    std::fs::hard_link(home.path("mnt/dir/file"), home.path("mnt/also")).unwrap();
    let refused = home.wirefs(&["serve", &source, "--listen", &home.url()]);
    refused.fails_with(&["in use by another process"]);
    home.wirefs(&["umount", "mnt"]).succeeds();
    home.wirefs(&["mount", &source, "mnt"]).succeeds();
    assert_eq!(home.read("mnt/dir/file"), "content");
    std::fs::remove_file(home.path("mnt/dir/file")).unwrap();
    assert_eq!(home.read("mnt/also"), "content");
}

#[test]
fn full_block_tree_can_be_emptied() {
    let home = TestHome::new();
    std::fs::create_dir(home.path("disk")).unwrap();
    let _disk = Tmpfs::mount(home.path("disk"), c"size=48m");
    home.wirefs(&["mount", &format!("blocks://{}", home.text("disk/store")), "mnt"]).succeeds();
    let mnt = home.path("mnt");
    // Writes files of all sizes until the tree is full; then reads and removes them one by one.
    let fill =
        "mkdir d; n=0; while head -c $((n % 7 * 300000 + 100)) /dev/zero > d/f$n; do n=$((n + 1)); done 2>&1";
    let output = script(&mnt, &format!("{fill}; ls d | wc -l"));
    assert!(output.contains("No space left"), "{output}");
    let count: usize = output.lines().last().unwrap().parse().unwrap();
    assert!(count > 15, "{count} files fit");
    script(&mnt, "cat d/* > /dev/null; : > d/f6; for n in d/*; do rm $n; done; rmdir d; test -z \"$(ls)\"");
    script(&mnt, "head -c 10000000 /dev/zero > again");
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn mounts_of_an_exported_block_tree_share_checkpoints() {
    let home = TestHome::new();
    let _server = home.serve_source(MEMORY, &["--listen", &home.url()]);
    home.wirefs(&["mount", &home.url(), "mnt"]).succeeds();
    let _second = SecondMount::mount(&home, "lease");
    home.write("mnt/file", "before");
    assert_eq!(home.wirefs(&["checkpoint", "list", "other"]).succeeds(), "");
    home.wirefs(&["checkpoint", "create", "other", "one"]).succeeds();
    home.write("mnt/file", "after");
    home.write("mnt/more", "");
    for mountpoint in ["mnt", "other"] {
        assert_eq!(home.read(&format!("{mountpoint}/.checkpoints/one/file")), "before");
        let output = home.wirefs(&["checkpoint", "diff", mountpoint, "one"]).succeeds();
        assert_eq!(output, "M .\nM file\nA more\n");
    }
    assert!(home.wirefs(&["checkpoint", "list", "mnt"]).succeeds().ends_with("  one\n"));
    home.wirefs(&["checkpoint", "create", "mnt", "one"]).fails_with(&["already"]);
    home.wirefs(&["checkpoint", "restore", "mnt", "one"]).succeeds();
    assert_eq!((home.read("mnt/file"), home.read("other/file")), ("before".into(), "before".into()));
    assert!(!home.path("other/more").exists());
    home.wirefs(&["checkpoint", "drop", "other", "one"]).succeeds();
    assert!(!home.path("mnt/.checkpoints").exists());
    home.wirefs(&["checkpoint", "diff", "mnt", "one"]).fails_with(&["no checkpoint `one`"]);
}

#[test]
fn removing_a_magic_file_restores_its_checkpoint() {
    let home = TestHome::new();
    home.wirefs(&["mount", MEMORY, "mnt"]).succeeds();
    home.write("mnt/dir/file", "before");
    home.write("mnt/dir/__checkpoint_one", "");
    assert_eq!(home.read("mnt/.checkpoints/one/dir/file"), "before");
    home.write("mnt/dir/file", "after");
    std::fs::rename(home.path("mnt/dir"), home.path("mnt/moved")).unwrap();
    std::fs::remove_file(home.path("mnt/moved/__checkpoint_one")).unwrap();
    // The kernel follows a moment later (S-10).
    wait_for("the names to go back", || {
        home.path("mnt/dir").exists()
            && !home.path("mnt/moved").exists()
            && !home.path("mnt/.checkpoints").exists()
    });
    assert_eq!(home.read("mnt/dir/file"), "before");
}

// S-10
#[test]
fn checkpoint_command_ends_when_its_effect_is_visible() {
    for mode in ["lease", "direct", "strict"] {
        let home = TestHome::new();
        home.wirefs(&["mount", "--mode", mode, MEMORY, "mnt"]).succeeds();
        let mnt = home.path("mnt");
        let exists = |name: &str| mnt.join(name).exists();
        for round in 0..30 {
            home.write("mnt/dir/file", "old");
            assert!(!exists(".checkpoints/one/dir/file"), "{mode}, {round}");
            home.wirefs(&["checkpoint", "create", "mnt", "one"]).succeeds();
            assert!(exists(".checkpoints/one/dir/file"), "{mode}, {round}");
            home.write("mnt/dir/file", "newer and longer");
            home.write("mnt/dir/more", "");
            home.write("mnt/top", "");
            assert!(exists("dir/more") && std::fs::read_dir(mnt.join("dir")).unwrap().count() == 2);
            home.wirefs(&["checkpoint", "restore", "mnt", "one"]).succeeds();
            // In this order: a listing makes the kernel look up names again.
            assert!(!exists("dir/more") && !exists("top"), "{mode}, {round}");
            assert_eq!(std::fs::metadata(mnt.join("dir/file")).unwrap().len(), 3, "{mode}, {round}");
            assert_eq!(std::fs::read_dir(mnt.join("dir")).unwrap().count(), 1, "{mode}, {round}");
            assert_eq!(home.read("mnt/dir/file"), "old", "{mode}, {round}");
            home.wirefs(&["checkpoint", "drop", "mnt", "one"]).succeeds();
            assert!(!exists(".checkpoints"), "{mode}, {round}");
        }
        home.wirefs(&["umount", "mnt"]).succeeds();
    }
}

#[test]
fn checkpoints_require_a_block_tree() {
    let home = TestHome::new();
    let _server = home.mounted();
    for arguments in [&["list", "mnt"][..], &["create", "mnt", "one"], &["diff", "mnt", "one"]] {
        let ran = home.wirefs(&[&["checkpoint"][..], arguments].concat());
        ran.fails_with(&["not the mountpoint of a whole block tree"]);
    }
}
