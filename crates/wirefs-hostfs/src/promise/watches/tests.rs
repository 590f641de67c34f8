use super::*;

fn id(ino: u64) -> FileId {
    FileId { ino, ..FileId::default() }
}

fn is_promised(watches: &Watches) -> bool {
    let mut is_promised = false;
    watches.promise(|| is_promised = true);
    is_promised
}

#[test]
fn what_nobody_knows_is_let_go() {
    let watches = Watches::default();
    let watched: Vec<FileId> = (0..3 * BATCH as u64).map(id).collect();
    let mut gone = Vec::new();
    watches.trim(&watched, &|ids| ids.iter().map(|id| id.ino % 2 == 0).collect(), |id| gone.push(id.ino));
    let odd: Vec<u64> = (0..3 * BATCH as u64).filter(|ino| ino % 2 == 1).collect();
    assert_eq!(gone, odd);
}

#[test]
fn who_began_before_something_was_let_go_promises_nothing() {
    let watches = Watches::default();
    watches.begin();
    assert!(is_promised(&watches));
    watches.trim(&[], &|_| vec![], |_| unreachable!("nothing is watched"));
    assert!(is_promised(&watches), "nothing was let go");
    watches.trim(&[id(1)], &|_| vec![false], drop);
    assert!(!is_promised(&watches));
    watches.begin();
    assert!(is_promised(&watches));
}
