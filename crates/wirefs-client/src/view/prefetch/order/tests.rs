use super::{AMONG_MAX, Order, Place};
use wirefs_op::{DirEntry, FileId, Kind, Stat};

fn id(ino: u64) -> FileId {
    FileId { ino, ..FileId::default() }
}

fn entry(name: &str, ino: u64, kind: Kind) -> DirEntry {
    DirEntry { name: name.as_bytes().to_vec(), next: 1, stat: Stat::blank(id(ino), kind) }
}

fn listing() -> Vec<DirEntry> {
    let directory = |name, ino| entry(name, ino, Kind::Directory);
    vec![directory("a", 30), directory("b", 10), entry("c", 5, Kind::File), directory("d", 20)]
}

fn place(name: &str, ino: u64) -> Place {
    (name.as_bytes().to_vec(), id(ino))
}

#[test]
fn directories_come_by_name_or_by_inode_and_files_do_not() {
    assert_eq!(Order::Name.children(&listing(), None), [30, 10, 20].map(id));
    assert_eq!(Order::Inode.children(&listing(), None), [10, 20, 30].map(id));
    assert_eq!(Order::Name.children(&listing(), Some(&place("a", 30))), [10, 20].map(id));
    assert_eq!(Order::Inode.children(&listing(), Some(&place("d", 20))), [30].map(id));
}

#[test]
fn order_is_recognized_by_successors_that_only_one_order_has() {
    assert_eq!(Order::of_step(&listing(), None, id(30)), Some(Order::Name));
    assert_eq!(Order::of_step(&listing(), None, id(10)), Some(Order::Inode));
    assert_eq!(Order::of_step(&listing(), None, id(20)), None, "it is first in neither");
    assert_eq!(Order::of_step(&listing(), Some(&place("d", 20)), id(30)), Some(Order::Inode));
    assert_eq!(Order::of_step(&listing()[1..], None, id(10)), None, "it is first in both");
}

#[test]
fn directories_late_in_a_long_listing_are_recognized_too() {
    let count = 2 * AMONG_MAX as u64;
    let name = |number: u64| format!("{number:06}");
    // The inode numbers go down as the names go up.
    let entries = |number| entry(&name(number), count - number, Kind::Directory);
    let listing: Vec<DirEntry> = (0..count).map(entries).collect();
    let place = |number| place(&name(number), count - number);
    for at in [0, 100, AMONG_MAX as u64 + 100, count - 3] {
        let next = Order::Name.children(&listing, Some(&place(at)));
        assert_eq!(next[..2], [count - at - 1, count - at - 2].map(id), "behind {at} by name");
        assert!(next.len() <= AMONG_MAX);
        let next = Order::Inode.children(&listing, Some(&place(at)));
        assert_eq!(next.first(), (at > 0).then(|| id(count - at + 1)).as_ref(), "behind {at} by inode");
        assert!(next.len() <= AMONG_MAX);
    }
}
