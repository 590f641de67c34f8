use super::{CONTENDED_FOR, CONTENDED_MAX, Contended};
use std::time::Duration;
use wirefs_op::{FileId, Time};

const NEW: Duration = Duration::ZERO;
const MOMENT: Duration = Duration::from_millis(1);

fn id(ino: u64) -> FileId {
    FileId { fs: 0, ino, generation: 1 }
}

#[test]
fn a_directory_is_contended_for_a_minute_after_its_last_change() {
    let (mut contended, now) = (Contended::default(), Time(7));
    assert!(!contended.is(now, id(1)));
    contended.changed(now, id(1), NEW);
    assert!(contended.is(now + (CONTENDED_FOR - MOMENT), id(1)));
    assert!(!contended.is(now + CONTENDED_FOR, id(1)));
    assert!(!contended.is(now, id(2)));
}

#[test]
fn an_old_change_counts_for_the_rest_of_its_minute_and_never_shortens_a_later_one() {
    let (mut contended, now) = (Contended::default(), Time(7));
    contended.changed(now, id(1), CONTENDED_FOR / 2);
    assert!(contended.is(now + (CONTENDED_FOR / 2 - MOMENT), id(1)));
    assert!(!contended.is(now + CONTENDED_FOR / 2, id(1)));
    contended.changed(now, id(1), NEW);
    contended.changed(now, id(1), CONTENDED_FOR / 2);
    assert!(contended.is(now + CONTENDED_FOR / 2, id(1)));
    contended.changed(now, id(2), CONTENDED_FOR);
    assert!(!contended.is(now, id(2)));
}

#[test]
fn past_the_limit_all_directories_are_contended() {
    let (mut contended, now) = (Contended::default(), Time(7));
    for ino in 0..CONTENDED_MAX as u64 {
        contended.changed(now, id(ino), NEW);
    }
    assert!(!contended.is(now, id(u64::MAX)));
    contended.changed(now, id(u64::MAX), CONTENDED_FOR / 2);
    for ino in [0, 1, u64::MAX, u64::MAX - 1] {
        assert!(contended.is(now + (CONTENDED_FOR - MOMENT), id(ino)), "{ino}");
        assert!(!contended.is(now + CONTENDED_FOR, id(ino)), "{ino}");
    }
    let later = now + CONTENDED_FOR;
    contended.all_changed(later);
    assert!(contended.is(later, id(u64::MAX - 1)));
}
