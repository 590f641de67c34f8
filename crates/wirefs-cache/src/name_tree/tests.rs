use super::*;
use std::time::Duration;
use wirefs_op::Kind;

pub(crate) fn stat(ino: u64, kind: Kind) -> Stat {
    Stat {
        version: 1,
        mode: 0o644,
        nlink: 1,
        blksize: 4096,
        without_xattrs: true,
        ..Stat::blank(FileId { fs: 0, ino, generation: 0 }, kind)
    }
}

fn coherency(now: u64) -> Coherency {
    Coherency::within(Time(now), Duration::from_nanos(5))
}

fn learn(names: &mut NameTree, stat: &Stat, at: u64) -> TreeNodeId {
    names.learn(stat, Freshness::since(Time(at)), &coherency(at)).0
}

fn tree() -> (NameTree, TreeNodeId, TreeNodeId) {
    let mut names = NameTree::new(stat(1, Kind::Directory), Freshness::since(Time(0)));
    let dir = learn(&mut names, &stat(2, Kind::Directory), 1);
    names.link(ROOT, b"dir", dir);
    names.count_lookup(dir);
    let file = learn(&mut names, &stat(3, Kind::File), 1);
    names.link(dir, b"file", file);
    names.count_lookup(file);
    (names, dir, file)
}

#[test]
fn a_path_follows_the_directory_when_it_is_renamed() {
    let (mut names, _, file) = tree();
    names.rename((ROOT, b"dir"), (ROOT, b"moved"), false);
    assert_eq!(names.path(file).unwrap().as_bytes(), b"moved/file");
}

#[test]
fn an_exchange_swaps_both_names() {
    let (mut names, dir, file) = tree();
    let other = learn(&mut names, &stat(4, Kind::File), 1);
    names.link(ROOT, b"other", other);
    names.rename((dir, b"file"), (ROOT, b"other"), true);
    assert_eq!(names.path(file).unwrap().as_bytes(), b"other");
    assert_eq!(names.path(other).unwrap().as_bytes(), b"dir/file");
}

#[test]
fn a_file_keeps_a_path_as_long_as_one_name_is_left() {
    let (mut names, dir, file) = tree();
    names.link(ROOT, b"second", file);
    assert_eq!(names.unlink(dir, b"file"), Some(file));
    assert_eq!(names.path(file).unwrap().as_bytes(), b"second");
    names.unlink(ROOT, b"second");
    assert!(names.path(file).is_none());
}

#[test]
fn attributes_requested_before_a_local_change_do_not_revert_it() {
    let (mut names, _, file) = tree();
    let mut after = stat(3, Kind::File);
    after.size = 7;
    names.changed(file, Some(&after), Freshness::since(Time(8)), Time(10));
    learn(&mut names, &stat(3, Kind::File), 9);
    assert_eq!(names.node(file).unwrap().stat.size, 7);
    learn(&mut names, &stat(3, Kind::File), 11);
    assert_eq!(names.node(file).unwrap().stat.size, 0);
}

#[test]
fn freshness_ends_with_the_window() {
    let (names, _, file) = tree();
    assert!(names.node(file).unwrap().is_fresh(&coherency(5)));
    assert!(!names.node(file).unwrap().is_fresh(&coherency(6)));
}

#[test]
fn a_forgotten_node_is_evicted_with_its_last_reference() {
    let (mut names, dir, file) = tree();
    names.hold(file);
    names.forget(file, 1);
    assert!(names.node(file).is_some());
    names.release(file);
    assert!(names.node(file).is_none() && names.child(dir, b"file").is_none());
    assert_ne!(learn(&mut names, &stat(3, Kind::File), 2), file);
}

#[test]
fn the_name_seen_last_determines_the_path() {
    let (mut names, dir, file) = tree();
    names.link(ROOT, b"zz", file);
    assert_eq!(names.path(file).unwrap().as_bytes(), b"zz");
    names.link(dir, b"file", file);
    assert_eq!(names.path(file).unwrap().as_bytes(), b"dir/file");
    names.unlink(dir, b"file");
    assert_eq!(names.path(file).unwrap().as_bytes(), b"zz");
}

#[test]
fn a_late_reply_to_an_own_change_does_not_revert_a_later_one() {
    let (mut names, _, file) = tree();
    let size = |size| Stat { size, ..stat(3, Kind::File) };
    names.changed(file, Some(&size(20)), Freshness::since(Time(6)), Time(10));
    names.changed(file, Some(&size(10)), Freshness::since(Time(5)), Time(11));
    let node = names.node(file).unwrap();
    assert_eq!((node.stat.size, node.freshness), (20, None));
}

#[test]
fn kernel_names_are_those_of_nodes_held_by_the_kernel() {
    let (mut names, dir, file) = tree();
    let listed = learn(&mut names, &stat(4, Kind::File), 1);
    names.link(dir, b"listed", listed);
    assert_eq!(names.kernel_names(dir).collect::<Vec<_>>(), [b"file"]);
    assert_eq!(names.held_by_kernel().collect::<Vec<_>>(), [ROOT, dir, file]);
    names.forget(file, 1);
    assert_eq!(names.kernel_names(dir).count(), 0);
}

#[test]
fn a_node_that_the_kernel_released_does_not_count_as_held_until_used_again() {
    let (mut names, _, file) = tree();
    assert!(!names.node(file).unwrap().is_used());
    names.count_lookup(file);
    names.used(file);
    assert!(names.node(file).unwrap().is_used());
    names.forget(file, 1);
    assert!(!names.node(file).unwrap().is_used());
}

#[test]
fn directories_that_exchange_places_make_no_cycle() {
    let (mut names, above, _) = tree();
    let below = learn(&mut names, &stat(4, Kind::Directory), 1);
    names.link(above, b"below", below);
    let deeper = learn(&mut names, &stat(5, Kind::Directory), 1);
    names.link(below, b"deeper", deeper);
    // Another client runs: mv dir/below . ; mv dir below/deeper
    names.link(deeper, b"dir", above);
    assert_eq!(names.path(above), None, "its place is no longer cached");
    names.link(ROOT, b"below", below);
    assert_eq!(names.path(above).unwrap().as_bytes(), b"below/deeper/dir");
    names.link(above, b"itself", above);
    assert_eq!(names.path(above).unwrap().as_bytes(), b"below/deeper/dir");
}

/// A link at `name` in `parent`, which the kernel holds.
fn link_at(names: &mut NameTree, ino: u64, parent: TreeNodeId, name: &[u8]) -> TreeNodeId {
    let link = learn(names, &stat(ino, Kind::Symlink), 1);
    names.link(parent, name, link);
    names.count_lookup(link);
    link
}

// S-165
#[test]
fn absolute_targets_lead_to_the_mount_only_by_its_own_path() {
    let leads = |target: &str| NameTree::leads_to_mount(b"/home/u/mnt", target.as_bytes());
    for target in ["/home/u/mnt", "/home/u/mnt/", "/home/u/mnt/d//f", "/home/u/mnt/./d", "/home/u/mnt/..."] {
        assert!(leads(target), "{target}");
    }
    for target in [
        "",
        "/",
        "home/u/mnt/d",
        "/home/u/mn",
        "/home/u/mnt2",
        "/home/u/mnt2/d",
        "//home/u/mnt/d",
        "/home/u/../u/mnt/d",
        "/home/u/mnt/..",
        "/home/u/mnt/../secret",
        "/home/u/mnt/d/../f",
        "/home/u/mnt/d/../../../secret",
        "/home/u/mnt/d\0",
    ] {
        assert!(!leads(target), "{target}");
    }
}

// S-165
#[test]
fn targets_of_links_stay_inside_only_as_far_as_no_directory_can_lead_out() {
    let (mut names, dir, _) = tree();
    let (top, below) = (link_at(&mut names, 8, ROOT, b"top"), link_at(&mut names, 9, dir, b"below"));
    let leads = |link, target: &str| names.leads_inside(link, target.as_bytes());
    for target in ["", ".", "a", "./a//b/", "a..", "...", "dir/file"] {
        assert!(leads(top, target) && leads(below, target), "{target}");
    }
    for target in ["..", "../a", "./.././a"] {
        assert!(!leads(top, target) && leads(below, target), "{target}");
    }
    for target in ["/", "/etc/passwd", "../..", "../../etc", "a/..", "a/../../..", "../a/..", "..\0/x", "a\0"]
    {
        assert!(!leads(top, target) && !leads(below, target), "{target}");
    }
}

// S-165
#[test]
fn links_climb_nowhere_once_a_server_has_moved_their_directory() {
    let (mut names, dir, _) = tree();
    let link = link_at(&mut names, 9, dir, b"link");
    let deep = learn(&mut names, &stat(10, Kind::Directory), 1);
    names.link(dir, b"deep", deep);
    names.count_lookup(deep);
    names.rename((dir, b"link"), (deep, b"link"), false);
    assert!(names.leads_inside(link, b"../../a") && !names.leads_inside(link, b"../../.."));
    // The kernel may have `deep` at the root still.
    names.rename((dir, b"deep"), (ROOT, b"deep"), false);
    assert!(!names.leads_inside(link, b"../../a"));
    names.link(dir, b"deep", deep);
    assert!(names.leads_inside(link, b"a") && !names.leads_inside(link, b"../a"));
    // So for a link that the server shows in another directory, but not for another name in the same one.
    let link = link_at(&mut names, 11, dir, b"other");
    names.unlink(dir, b"other");
    assert!(!names.leads_inside(link, b"../a"));
    names.link(dir, b"again", link);
    assert!(names.leads_inside(link, b"../a"));
    names.unlink(dir, b"again");
    names.link(deep, b"other", link);
    assert!(names.leads_inside(link, b"a") && !names.leads_inside(link, b"../a"));
}

// S-165
#[test]
fn links_climb_nowhere_below_a_directory_whose_rename_lost_its_caller() {
    let (mut names, dir, _) = tree();
    let deep = learn(&mut names, &stat(10, Kind::Directory), 1);
    names.link(ROOT, b"deep", deep);
    names.count_lookup(deep);
    let link = link_at(&mut names, 9, deep, b"link");
    assert!(names.leads_inside(link, b"../a") && !names.leads_inside(link, b"../../a"));
    names.rename((ROOT, b"deep"), (dir, b"deep"), false);
    assert!(names.leads_inside(link, b"../../a"), "the kernel has moved it too");
    // The kernel has it at the root still, where two steps lead out.
    names.moved_without_kernel(deep);
    assert!(!names.leads_inside(link, b"../../a") && names.leads_inside(link, b"a"));
}
