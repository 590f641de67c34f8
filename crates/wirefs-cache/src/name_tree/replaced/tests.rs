use crate::coherency::{Coherency, Freshness};
use crate::name_tree::tests::stat;
use crate::name_tree::{NameTree, ROOT};
use std::time::Duration;
use wirefs_op::{Kind, Stat, Time};

#[test]
fn a_replaced_file_keeps_its_node_and_the_old_object_gets_another() {
    let coherency = Coherency::within(Time(5), Duration::from_nanos(5));
    let mut names = NameTree::new(stat(1, Kind::Directory), Freshness::since(Time(0)));
    let (file, _) = names.learn(&stat(3, Kind::File), Freshness::since(Time(1)), &coherency);
    names.link(ROOT, b"f", file);
    let new = Stat { size: 7, ..stat(4, Kind::File) };
    names.replaced(file, &new, Freshness::since(Time(2)), Time(3));
    assert_eq!((names.of_file(new.id), names.of_file(stat(3, Kind::File).id)), (Some(file), None));
    assert_eq!(names.node(file).unwrap().stat.size, 7);
    assert_eq!(names.child(ROOT, b"f"), Some(file));
    let (other, _) = names.learn(&stat(3, Kind::File), Freshness::since(Time(4)), &coherency);
    assert_ne!(other, file);
    let (same, counts) = names.learn(&Stat { size: 9, ..new }, Freshness::since(Time(2)), &coherency);
    assert_eq!((same, counts), (file, false), "requested before it was replaced");
}
