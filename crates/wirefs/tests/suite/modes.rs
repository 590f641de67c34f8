//! What two mounts of one directory see of each other in each mode; the ids are those of docs/SEMANTICS.md.

use crate::pen::Pen;
use crate::world::{Other, World, wait_for};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

// S-39
#[test]
fn in_lazy_mode_a_write_is_at_the_server_once_there_is_enough_of_it_or_the_file_is_closed() {
    let world = World::new();
    let _server = world.mounted();
    let _other = Other::mount(&world, "lazy=4k");
    let mut pen = Pen::new(&world);
    let file = pen.open("other/log");
    pen.write(file, 0, b'x', 1000);
    pen.write(file, 1000, b'x', 1000);
    assert_eq!(world.read("export/log").len(), 0);
    pen.write(file, 2000, b'x', 3000);
    // The kernel hands on a write page by page: the first page is enough, what is behind it begins the next piece.
    wait_for("what is enough", || world.read("export/log").len() >= 4096);
    let there = world.read("export/log").len();
    pen.write(file, 5000, b'!', 3);
    assert_eq!(world.read("export/log").len(), there);
    pen.close(file);
    assert_eq!(world.read("export/log").len(), 5003);
    assert_eq!(world.read("mnt/log").len(), 5003);
}

// S-40
#[test]
fn in_commit_mode_a_close_waits_for_the_servers_disk() {
    let world = World::new();
    let _server = world.mounted();
    let _other = Other::mount(&world, "commit");
    world.write("other/a", "text");
    assert_eq!((world.read("export/a"), world.read("mnt/a")), ("text".to_owned(), "text".to_owned()));
    let status = world.wirefs(&["status", "other", "--json"]).stdout;
    assert!(status.contains("\"Commit\""), "{status}");
    assert!(status.contains("\"commit\""), "the mode is shown: {status}");
}

// S-42
#[test]
fn in_session_mode_each_open_file_is_a_copy_until_it_is_closed() {
    let world = World::new();
    world.write("export/a", "old");
    let _server = world.mounted();
    let _other = Other::mount(&world, "session");
    let (mut pen, mut other) = (Pen::new(&world), Pen::new(&world));
    let (writer, reader) = (pen.open("other/a"), other.open("other/a"));
    pen.write(writer, 0, b'n', 5);
    assert_eq!(pen.text_of(writer), "nnnnn");
    assert_eq!(other.text_of(reader), "old", "another program of the same mount");
    assert_eq!(world.read("other/a"), "old");
    assert_eq!(world.read("export/a"), "old");
    pen.close(writer);
    assert_eq!(world.read("export/a"), "nnnnn");
    assert_eq!(world.read("other/a"), "nnnnn");
    assert_eq!(other.text_of(reader), "old", "what is open stays as it was");
    std::fs::write(world.path("mnt/a"), "newest").unwrap();
    assert_eq!(world.read("other/a"), "newest", "validated at open");
}

// S-43 S-87
#[test]
fn in_session_mode_the_last_to_close_wins_whole() {
    let world = World::new();
    let data = vec![b'.'; 300_000];
    std::fs::write(world.path("export/a"), &data).unwrap();
    let _server = world.mounted();
    let _other = Other::mount(&world, "session");
    let mut pen = Pen::new(&world);
    let (first, second) = (pen.open("other/a"), pen.open("other/a"));
    pen.write(first, 0, b'1', 1000);
    pen.write(second, 200_000, b'2', 1000);
    pen.close(second);
    pen.close(first);
    let found = std::fs::read(world.path("export/a")).unwrap();
    assert_eq!(found.len(), data.len());
    assert!(found.starts_with(b"111") && !found.contains(&b'2'), "one of them, whole");
    wait_for("the loser's place", || world.status_of("other")["conflicts"] == 1);
    let kept = world.status_of("other")["conflicts_last"][0].as_str().unwrap().to_owned();
    let mut names: Vec<_> =
        std::fs::read_dir(world.path("export")).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a", &kept], "nothing else is left beside it");
    assert!(kept.starts_with("a.wirefs-conflict-"), "{kept}");
    let found = std::fs::read(world.path("other").join(&kept)).unwrap();
    assert!(found.len() == data.len() && found.ends_with(&[b'.'; 1000]) && found[200_000] == b'2');
    let told = world.wirefs(&["status", "other"]).succeeds();
    assert!(told.contains("conflicts") && told.contains(&kept), "{told}");
}

// S-87
#[test]
fn in_session_mode_what_a_program_at_the_server_wrote_meanwhile_is_kept() {
    let world = World::new();
    world.write("export/a", "old");
    let _server = world.mounted();
    let _other = Other::mount(&world, "session");
    let mut pen = Pen::new(&world);
    let writer = pen.open("other/a");
    pen.write(writer, 0, b'h', 4);
    world.write("export/a", "at the server");
    pen.close(writer);
    assert_eq!(world.read("export/a"), "hhhh");
    wait_for("the loser's place", || world.status_of("other")["conflicts"] == 1);
    let kept = world.status_of("other")["conflicts_last"][0].as_str().unwrap().to_owned();
    assert_eq!(world.read(&format!("export/{kept}")), "at the server");
}

// S-44
#[test]
fn in_session_mode_a_published_file_keeps_what_it_had_and_one_with_two_names_stays_one() {
    let world = World::new();
    for name in ["one", "two"] {
        world.write(&format!("export/{name}"), "old, and long");
        std::fs::set_permissions(world.path(&format!("export/{name}")), PermissionsExt::from_mode(0o751))
            .unwrap();
    }
    std::fs::hard_link(world.path("export/two"), world.path("export/also")).unwrap();
    let before = std::fs::metadata(world.path("export/two")).unwrap();
    let _server = world.mounted();
    let _other = Other::mount(&world, "session");
    std::fs::write(world.path("other/one"), "new").unwrap();
    std::fs::write(world.path("other/two"), "new").unwrap();
    let (one, two) = (
        std::fs::metadata(world.path("export/one")).unwrap(),
        std::fs::metadata(world.path("export/two")).unwrap(),
    );
    assert_eq!((one.mode() & 0o7777, one.uid(), one.len()), (0o751, before.uid(), 3));
    assert_eq!((two.ino(), two.nlink()), (before.ino(), 2));
    assert_eq!((world.read("export/also"), world.read("other/two")), ("new".to_owned(), "new".to_owned()));
}

// S-1
#[test]
fn programs_work_in_each_mode() {
    for mode in ["lease", "window", "session", "lazy=4k", "commit", "direct", "strict"] {
        let world = World::new();
        let _server = world.mounted();
        let _other = Other::mount(&world, mode);
        let script = "set -e; mkdir d; cd d; seq 1 30000 > a; cp -p a b; cmp a b; sed -i s/77/x/ b; cat a b > c; \
                      sort -n c > e; mv e c; ln c f; rm a; seq 1 5 >> b; test $(wc -l < b) = 30005; \
                      dd if=b of=g bs=1000 seek=3 count=2 conv=notrunc 2> /dev/null; truncate -s 10 g; tar cf t b c; \
                      mkdir u; tar xf t -C u; cmp u/b b; grep -c x b";
        let ran = world.run_in_group(
            world.command("sh").args(["-c", script]).current_dir(world.path("other")).env("LC_ALL", "C"),
        );
        assert_eq!(ran.code, Some(0), "{mode}: {}{}", ran.stdout, ran.stderr);
        let sizes = |dir: &str| -> Vec<u64> {
            ["b", "c", "f", "g", "t"]
                .iter()
                .map(|name| std::fs::metadata(world.path(dir).join(name)).unwrap().len())
                .collect()
        };
        assert_eq!(sizes("other/d"), sizes("export/d"), "{mode}");
    }
}
