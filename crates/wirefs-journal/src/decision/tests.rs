use super::*;

fn found(ino: u64) -> Found {
    Found { id: FileId { fs: 3, ino, generation: 2 }, changed: 1_000 + ino }
}

fn decision() -> Decision {
    let at = |names: &[&[u8]]| TreePath::from_names(names.iter().copied()).unwrap();
    Decision {
        boot: BootId(7),
        next: 40,
        seen: 5_000,
        names: BTreeMap::from([(at(&[b"a"]), found(4)), (at(&[b"a", b"b"]), found(5))]),
        objects: BTreeMap::from([(TreePath::root(), found(1))]),
        answered: 0,
    }
}

#[test]
fn what_was_found_is_read_again_and_so_is_what_the_server_may_have_forgotten() {
    let mut file = decision().encode(9);
    assert_eq!(Decision::decode(&file, 9), Some(decision()));
    file.extend(Decision::answered(1_000));
    file.extend(Decision::answered(900));
    assert_eq!(Decision::decode(&file, 9), Some(Decision { answered: 1_000, ..decision() }));
}

#[test]
fn it_counts_in_the_run_of_the_kernel_that_wrote_it() {
    assert_eq!(Decision::decode(&decision().encode(9), 10), None);
}

#[test]
fn a_torn_or_damaged_one_tells_nothing_and_a_torn_end_nothing_more() {
    let (front, end) = (decision().encode(9), Decision::answered(1_000));
    for length in 0..front.len() {
        assert_eq!(Decision::decode(&front[..length], 9), None, "{length} bytes");
    }
    for length in 0..end.len() {
        let file = [&front[..], &end[..length]].concat();
        assert_eq!(Decision::decode(&file, 9), Some(decision()), "{length} bytes more");
    }
    for wrong in 0..front.len() {
        let mut file = front.clone();
        file[wrong] ^= 0x10;
        assert_eq!(Decision::decode(&file, 9), None, "byte {wrong}");
    }
}

#[test]
fn a_server_that_knows_none_of_its_numbers_has_done_nothing_of_it() {
    let terms = |ledger, boot| Terms { ledger, boot: BootId(boot) };
    assert!(decision().is_begun_at(terms(Some(40), 7)));
    assert!(!decision().is_begun_at(terms(Some(1), 7)));
    assert!(!decision().is_begun_at(terms(Some(41), 8)));
    assert!(!decision().is_begun_at(terms(None, 7)));
}
