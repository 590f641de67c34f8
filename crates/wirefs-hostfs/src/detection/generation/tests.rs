use super::*;

fn id(ino: u64) -> FileId {
    FileId { ino, ..FileId::default() }
}

fn is_current(watches: &WatchGeneration) -> bool {
    let mut is_leased = false;
    watches.if_current(|| is_leased = true);
    is_leased
}

#[test]
fn watches_without_leases_are_released() {
    let watches = WatchGeneration::default();
    let watched: Vec<FileId> = (0..3 * BATCH as u64).map(id).collect();
    let mut gone = Vec::new();
    watches.trim(&watched, &|ids| ids.iter().map(|id| id.ino % 2 == 0).collect(), |id| gone.push(id.ino));
    let odd: Vec<u64> = (0..3 * BATCH as u64).filter(|ino| ino % 2 == 1).collect();
    assert_eq!(gone, odd);
}

#[test]
fn no_leases_if_watches_were_released_since_the_request_began() {
    let watches = WatchGeneration::default();
    watches.begin_request();
    assert!(is_current(&watches));
    watches.trim(&[], &|_| vec![], |_| unreachable!("nothing is watched"));
    assert!(is_current(&watches), "no watch was released");
    watches.trim(&[id(1)], &|_| vec![false], drop);
    assert!(!is_current(&watches));
    watches.begin_request();
    assert!(is_current(&watches));
}
