use super::*;

fn found(ino: u64) -> ObjectStat {
    ObjectStat {
        id: FileId { fs: 3, ino, generation: 2 },
        changed: 1_000 + ino,
        modified: 900 + ino,
        size: ino * 7,
    }
}

fn findings() -> Findings {
    let at = |names: &[&[u8]]| TreePath::from_names(names.iter().copied()).unwrap();
    Findings {
        boot: BootId(7),
        next: 40,
        latest_time: 5_000,
        names: BTreeMap::from([(at(&[b"a"]), found(4)), (at(&[b"a", b"b"]), found(5))]),
        objects: BTreeMap::from([(TreePath::root(), found(1))]),
        answered: 0,
    }
}

#[test]
fn findings_and_answered_numbers_are_decoded_again() {
    let mut file = findings().encode(9);
    assert_eq!(Findings::decode(&file, 9), Some(findings()));
    file.extend(Findings::answered(1_000));
    file.extend(Findings::answered(900));
    assert_eq!(Findings::decode(&file, 9), Some(Findings { answered: 1_000, ..findings() }));
}

#[test]
fn findings_count_only_in_their_kernel_run() {
    assert_eq!(Findings::decode(&findings().encode(9), 10), None);
}

#[test]
fn torn_or_damaged_findings_do_not_count_and_a_torn_end_is_ignored() {
    let (front, end) = (findings().encode(9), Findings::answered(1_000));
    for length in 0..front.len() {
        assert_eq!(Findings::decode(&front[..length], 9), None, "{length} bytes");
    }
    for length in 0..end.len() {
        let file = [&front[..], &end[..length]].concat();
        assert_eq!(Findings::decode(&file, 9), Some(findings()), "{length} bytes more");
    }
    for wrong in 0..front.len() {
        let mut file = front.clone();
        file[wrong] ^= 0x10;
        assert_eq!(Findings::decode(&file, 9), None, "byte {wrong}");
    }
}

#[test]
fn server_without_its_numbers_has_applied_nothing() {
    let terms = |ledger, boot| SessionTerms { ledger, boot: BootId(boot) };
    assert!(findings().is_begun_at(terms(Some(40), 7)));
    assert!(!findings().is_begun_at(terms(Some(1), 7)));
    assert!(!findings().is_begun_at(terms(Some(41), 8)));
    assert!(!findings().is_begun_at(terms(None, 7)));
}
