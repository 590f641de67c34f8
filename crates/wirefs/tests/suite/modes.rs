//! Consistency between two mounts of one directory in each mode; the ids are those of docs/SEMANTICS.md.

use crate::file_holder::FileHolder;
use crate::home::{SecondMount, TestHome, wait_for};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

// S-15
#[test]
fn in_lazy_mode_writes_are_sent_at_the_threshold_or_at_close() {
    let home = TestHome::new();
    let _server = home.mounted();
    let _second = SecondMount::mount(&home, "lazy=4k");
    let mut file_holder = FileHolder::new(&home);
    let file = file_holder.open("other/log");
    file_holder.write(file, 0, b'x', 1000);
    file_holder.write(file, 1000, b'x', 1000);
    assert_eq!(home.read("export/log").len(), 0);
    file_holder.write(file, 2000, b'x', 3000);
    // The kernel passes a write page by page: the first page reaches the threshold, the rest begins the next piece.
    wait_for("what is enough", || home.read("export/log").len() >= 4096);
    let there = home.read("export/log").len();
    file_holder.write(file, 5000, b'!', 3);
    assert_eq!(home.read("export/log").len(), there);
    file_holder.close(file);
    assert_eq!(home.read("export/log").len(), 5003);
    assert_eq!(home.read("mnt/log").len(), 5003);
}

// S-24
#[test]
fn in_commit_mode_a_close_waits_for_the_servers_disk() {
    let home = TestHome::new();
    let _server = home.mounted();
    let _second = SecondMount::mount(&home, "commit");
    home.write("other/a", "text");
    assert_eq!((home.read("export/a"), home.read("mnt/a")), ("text".to_owned(), "text".to_owned()));
    let status = home.wirefs(&["status", "other", "--json"]).stdout;
    assert!(status.contains("\"Commit\""), "{status}");
    assert!(status.contains("\"commit\""), "the mode is shown: {status}");
}

// S-26
#[test]
fn in_session_mode_each_open_file_is_a_copy_until_it_is_closed() {
    let home = TestHome::new();
    home.write("export/a", "old");
    let _server = home.mounted();
    let _second = SecondMount::mount(&home, "session");
    let (mut file_holder, mut other) = (FileHolder::new(&home), FileHolder::new(&home));
    let (writer, reader) = (file_holder.open("other/a"), other.open("other/a"));
    file_holder.write(writer, 0, b'n', 5);
    assert_eq!(file_holder.text_of(writer), "nnnnn");
    assert_eq!(other.text_of(reader), "old", "another program of the same mount");
    assert_eq!(home.read("other/a"), "old");
    assert_eq!(home.read("export/a"), "old");
    file_holder.close(writer);
    assert_eq!(home.read("export/a"), "nnnnn");
    assert_eq!(home.read("other/a"), "nnnnn");
    assert_eq!(other.text_of(reader), "old", "what is open stays as it was");
    std::fs::write(home.path("mnt/a"), "newest").unwrap();
    assert_eq!(home.read("other/a"), "newest", "validated at open");
}

// S-27 S-28
#[test]
fn in_session_mode_the_last_close_replaces_the_whole_file() {
    let home = TestHome::new();
    let data = vec![b'.'; 300_000];
    std::fs::write(home.path("export/a"), &data).unwrap();
    let _server = home.mounted();
    let _second = SecondMount::mount(&home, "session");
    let mut file_holder = FileHolder::new(&home);
    let (first, second) = (file_holder.open("other/a"), file_holder.open("other/a"));
    file_holder.write(first, 0, b'1', 1000);
    file_holder.write(second, 200_000, b'2', 1000);
    file_holder.close(second);
    file_holder.close(first);
    let found = std::fs::read(home.path("export/a")).unwrap();
    assert_eq!(found.len(), data.len());
    assert!(found.starts_with(b"111") && !found.contains(&b'2'), "one of them, whole");
    wait_for("the loser's place", || home.status_of("other")["conflicts"] == 1);
    let kept = home.status_of("other")["conflicts_last"][0].as_str().unwrap().to_owned();
    let mut names: Vec<_> =
        std::fs::read_dir(home.path("export")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a", &kept], "nothing else is left beside it");
    assert!(kept.starts_with("a.wirefs-conflict-"), "{kept}");
    let found = std::fs::read(home.path("other").join(&kept)).unwrap();
    assert!(found.len() == data.len() && found.ends_with(&[b'.'; 1000]) && found[200_000] == b'2');
    let output = home.wirefs(&["status", "other"]).succeeds();
    assert!(output.contains("conflicts") && output.contains(&kept), "{output}");
}

// S-28
#[test]
fn in_session_mode_a_concurrent_version_becomes_a_conflict_copy() {
    let home = TestHome::new();
    home.write("export/a", "old");
    let _server = home.mounted();
    let _second = SecondMount::mount(&home, "session");
    let mut file_holder = FileHolder::new(&home);
    let writer = file_holder.open("other/a");
    file_holder.write(writer, 0, b'h', 4);
    home.write("export/a", "at the server");
    file_holder.close(writer);
    assert_eq!(home.read("export/a"), "hhhh");
    wait_for("the loser's place", || home.status_of("other")["conflicts"] == 1);
    let kept = home.status_of("other")["conflicts_last"][0].as_str().unwrap().to_owned();
    assert_eq!(home.read(&format!("export/{kept}")), "at the server");
}

// S-29
#[test]
fn in_session_mode_a_published_file_keeps_its_attributes_and_hard_links() {
    let home = TestHome::new();
    for name in ["one", "two"] {
        home.write(&format!("export/{name}"), "old, and long");
        std::fs::set_permissions(home.path(&format!("export/{name}")), PermissionsExt::from_mode(0o751))
            .unwrap();
    }
    std::fs::hard_link(home.path("export/two"), home.path("export/also")).unwrap();
    let before = std::fs::metadata(home.path("export/two")).unwrap();
    let _server = home.mounted();
    let _second = SecondMount::mount(&home, "session");
    std::fs::write(home.path("other/one"), "new").unwrap();
    std::fs::write(home.path("other/two"), "new").unwrap();
    let (one, two) = (
        std::fs::metadata(home.path("export/one")).unwrap(),
        std::fs::metadata(home.path("export/two")).unwrap(),
    );
    assert_eq!((one.mode() & 0o7777, one.uid(), one.len()), (0o751, before.uid(), 3));
    assert_eq!((two.ino(), two.nlink()), (before.ino(), 2));
    assert_eq!((home.read("export/also"), home.read("other/two")), ("new".to_owned(), "new".to_owned()));
}

// S-1
#[test]
fn programs_work_in_each_mode() {
    for mode in ["lease", "window", "session", "lazy=4k", "commit", "direct", "strict"] {
        let home = TestHome::new();
        let _server = home.mounted();
        let _second = SecondMount::mount(&home, mode);
        let script = "set -e; mkdir d; cd d; seq 1 30000 > a; cp -p a b; cmp a b; sed -i s/77/x/ b; cat a b > c; \
                      sort -n c > e; mv e c; ln c f; rm a; seq 1 5 >> b; test $(wc -l < b) = 30005; \
                      dd if=b of=g bs=1000 seek=3 count=2 conv=notrunc 2> /dev/null; truncate -s 10 g; tar cf t b c; \
                      mkdir u; tar xf t -C u; cmp u/b b; grep -c x b";
        let ran = home.run_in_group(
            home.command("sh").args(["-c", script]).current_dir(home.path("other")).env("LC_ALL", "C"),
        );
        assert_eq!(ran.code, Some(0), "{mode}: {}{}", ran.stdout, ran.stderr);
        let sizes = |dir: &str| -> Vec<u64> {
            ["b", "c", "f", "g", "t"]
                .iter()
                .map(|name| std::fs::metadata(home.path(dir).join(name)).unwrap().len())
                .collect()
        };
        assert_eq!(sizes("other/d"), sizes("export/d"), "{mode}");
    }
}
