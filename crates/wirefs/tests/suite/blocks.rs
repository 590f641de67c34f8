//! Block trees, mounted in one process and exported, and their checkpoints.

use std::path::Path;
use std::process::Command;

use wirefs_model::run_posix;

use crate::semantics::Tmpfs;
use crate::world::{Other, World, wait_for};

const MEMORY: &str = "blocks+memory:";

/// Runs a shell script in a directory, and returns what it printed.
fn script(dir: &Path, text: &str) -> String {
    let output = Command::new("sh").args(["-euc", text]).current_dir(dir).env("HOME", dir).output().unwrap();
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", shown(&output.stdout), shown(&output.stderr));
    shown(&output.stdout)
}

/// Real programs at work, and what came out of it.
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
fn programs_do_on_a_block_tree_what_they_do_on_a_local_disk() {
    let world = World::new();
    world.wirefs(&["mount", MEMORY, "mnt"]).succeeds();
    let local = script(&world.path("export"), PROGRAMS);
    let there = script(&world.path("mnt"), PROGRAMS);
    assert_eq!(there, local);
    world.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn random_operations_on_mounts_of_a_block_tree_do_what_the_model_does() {
    let world = World::new();
    let _server = world.serve_source(MEMORY, &["--listen", &world.url()]);
    // What these keep is next to nothing, so that each operation comes to the tree.
    world.wirefs(&["mount", "--mode", "strict", &world.url(), "mnt"]).succeeds();
    let _other = Other::mount(&world, "strict");
    for seed in 0..3 {
        // The second one is of two clients, who see each other's changes.
        let names = if seed == 1 { &["mnt", "other"][..] } else { &["mnt"] };
        let run = format!("run{seed}");
        std::fs::create_dir(world.path("mnt").join(&run)).unwrap();
        let paths: Vec<_> = names.iter().map(|name| world.path(name).join(&run)).collect();
        let paths: Vec<&Path> = paths.iter().map(|path| path.as_path()).collect();
        run_posix(seed, 600, &paths).unwrap_or_else(|mismatch| panic!("{mismatch}"));
    }
}

#[test]
fn a_block_tree_in_a_directory_is_there_when_it_is_mounted_again() {
    let world = World::new();
    let source = format!("blocks://{}", world.text("store"));
    world.wirefs(&["mount", &source, "mnt"]).succeeds();
    world.write("mnt/dir/file", "content");
    std::fs::hard_link(world.path("mnt/dir/file"), world.path("mnt/also")).unwrap();
    let refused = world.wirefs(&["serve", &source, "--listen", &world.url()]);
    refused.fails_with(&["in use by another process"]);
    world.wirefs(&["umount", "mnt"]).succeeds();
    world.wirefs(&["mount", &source, "mnt"]).succeeds();
    assert_eq!(world.read("mnt/dir/file"), "content");
    std::fs::remove_file(world.path("mnt/dir/file")).unwrap();
    assert_eq!(world.read("mnt/also"), "content");
}

#[test]
fn a_full_block_tree_can_be_emptied() {
    let world = World::new();
    std::fs::create_dir(world.path("disk")).unwrap();
    let _disk = Tmpfs::mount(world.path("disk"), c"size=48m");
    world.wirefs(&["mount", &format!("blocks://{}", world.text("disk/store")), "mnt"]).succeeds();
    let mnt = world.path("mnt");
    // Files of all sizes, until nothing fits; all of them are read, and go again, one by one.
    let fill =
        "mkdir d; n=0; while head -c $((n % 7 * 300000 + 100)) /dev/zero > d/f$n; do n=$((n + 1)); done 2>&1";
    let told = script(&mnt, &format!("{fill}; ls d | wc -l"));
    assert!(told.contains("No space left"), "{told}");
    let count: usize = told.lines().last().unwrap().parse().unwrap();
    assert!(count > 15, "{count} files fit");
    script(&mnt, "cat d/* > /dev/null; : > d/f6; for n in d/*; do rm $n; done; rmdir d; test -z \"$(ls)\"");
    script(&mnt, "head -c 10000000 /dev/zero > again");
    world.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn a_block_tree_is_exported_and_two_mounts_see_each_others_checkpoints() {
    let world = World::new();
    let _server = world.serve_source(MEMORY, &["--listen", &world.url()]);
    world.wirefs(&["mount", &world.url(), "mnt"]).succeeds();
    let _other = Other::mount(&world, "lease");
    world.write("mnt/file", "before");
    assert_eq!(world.wirefs(&["checkpoint", "list", "other"]).succeeds(), "");
    world.wirefs(&["checkpoint", "create", "other", "one"]).succeeds();
    world.write("mnt/file", "after");
    world.write("mnt/more", "");
    for mountpoint in ["mnt", "other"] {
        assert_eq!(world.read(&format!("{mountpoint}/.checkpoints/one/file")), "before");
        let told = world.wirefs(&["checkpoint", "diff", mountpoint, "one"]).succeeds();
        assert_eq!(told, "M .\nM file\nA more\n");
    }
    assert!(world.wirefs(&["checkpoint", "list", "mnt"]).succeeds().ends_with("  one\n"));
    world.wirefs(&["checkpoint", "create", "mnt", "one"]).fails_with(&["already"]);
    world.wirefs(&["checkpoint", "restore", "mnt", "one"]).succeeds();
    assert_eq!((world.read("mnt/file"), world.read("other/file")), ("before".into(), "before".into()));
    assert!(!world.path("other/more").exists());
    world.wirefs(&["checkpoint", "drop", "other", "one"]).succeeds();
    assert!(!world.path("mnt/.checkpoints").exists());
    world.wirefs(&["checkpoint", "diff", "mnt", "one"]).fails_with(&["no checkpoint `one`"]);
}

#[test]
fn removing_a_magic_file_goes_back_to_when_it_was_made() {
    let world = World::new();
    world.wirefs(&["mount", MEMORY, "mnt"]).succeeds();
    world.write("mnt/dir/file", "before");
    world.write("mnt/dir/__checkpoint_one", "");
    assert_eq!(world.read("mnt/.checkpoints/one/dir/file"), "before");
    world.write("mnt/dir/file", "after");
    std::fs::rename(world.path("mnt/dir"), world.path("mnt/moved")).unwrap();
    std::fs::remove_file(world.path("mnt/moved/__checkpoint_one")).unwrap();
    // A moment later for the kernel (S-141).
    wait_for("the names to go back", || {
        world.path("mnt/dir").exists()
            && !world.path("mnt/moved").exists()
            && !world.path("mnt/.checkpoints").exists()
    });
    assert_eq!(world.read("mnt/dir/file"), "before");
}

// S-141
#[test]
fn a_command_about_checkpoints_ends_when_its_mount_shows_what_it_did() {
    for mode in ["lease", "direct", "strict"] {
        let world = World::new();
        world.wirefs(&["mount", "--mode", mode, MEMORY, "mnt"]).succeeds();
        let mnt = world.path("mnt");
        let exists = |name: &str| mnt.join(name).exists();
        for round in 0..30 {
            world.write("mnt/dir/file", "old");
            assert!(!exists(".checkpoints/one/dir/file"), "{mode}, {round}");
            world.wirefs(&["checkpoint", "create", "mnt", "one"]).succeeds();
            assert!(exists(".checkpoints/one/dir/file"), "{mode}, {round}");
            world.write("mnt/dir/file", "newer and longer");
            world.write("mnt/dir/more", "");
            world.write("mnt/top", "");
            assert!(exists("dir/more") && std::fs::read_dir(mnt.join("dir")).unwrap().count() == 2);
            world.wirefs(&["checkpoint", "restore", "mnt", "one"]).succeeds();
            // In this order: a listing makes the kernel ask anew.
            assert!(!exists("dir/more") && !exists("top"), "{mode}, {round}");
            assert_eq!(std::fs::metadata(mnt.join("dir/file")).unwrap().len(), 3, "{mode}, {round}");
            assert_eq!(std::fs::read_dir(mnt.join("dir")).unwrap().count(), 1, "{mode}, {round}");
            assert_eq!(world.read("mnt/dir/file"), "old", "{mode}, {round}");
            world.wirefs(&["checkpoint", "drop", "mnt", "one"]).succeeds();
            assert!(!exists(".checkpoints"), "{mode}, {round}");
        }
        world.wirefs(&["umount", "mnt"]).succeeds();
    }
}

#[test]
fn checkpoints_are_for_block_trees() {
    let world = World::new();
    let _server = world.mounted();
    for arguments in [&["list", "mnt"][..], &["create", "mnt", "one"], &["diff", "mnt", "one"]] {
        let ran = world.wirefs(&[&["checkpoint"][..], arguments].concat());
        ran.fails_with(&["not the mountpoint of a whole block tree"]);
    }
}
