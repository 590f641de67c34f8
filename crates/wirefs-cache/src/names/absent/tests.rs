use super::*;

#[test]
fn a_name_is_told_until_it_is_untold() {
    let mut absent = Absent::default();
    assert!(absent.tell(TreeNodeId(1), b"a") && absent.tell(TreeNodeId(1), b"a"));
    assert_eq!(absent.count, 1);
    assert!(!absent.untell(TreeNodeId(2), b"a"));
    assert!(absent.untell(TreeNodeId(1), b"a"));
    assert!(!absent.untell(TreeNodeId(1), b"a"));
    assert_eq!((absent.count, absent.directories()), (0, vec![]));
}

#[test]
fn no_more_are_told_than_are_remembered() {
    let mut absent = Absent::default();
    let told = (0..IN_ONE_MAX + 10).filter(|index| absent.tell(TreeNodeId(1), &index.to_le_bytes())).count();
    assert_eq!(told, IN_ONE_MAX);
    let all: usize = (2..200)
        .map(|dir| (0..1000_u32).filter(|index| absent.tell(TreeNodeId(dir), &index.to_le_bytes())).count())
        .sum();
    assert_eq!(told + all, IN_ALL_MAX);
    assert_eq!(absent.untell_all(TreeNodeId(1)).len(), IN_ONE_MAX);
    assert!(absent.tell(TreeNodeId(1), b"again"));
}

#[test]
fn fewer_are_remembered_where_less_is_allowed() {
    let mut absent = Absent::default();
    absent.bound(100);
    let told = (0..1000_u32).filter(|index| absent.tell(TreeNodeId(1), &index.to_le_bytes())).count();
    assert_eq!(told, 100);
}
