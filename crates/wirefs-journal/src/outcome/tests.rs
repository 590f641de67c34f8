use super::*;

#[test]
fn outcomes_are_decoded_again() {
    let id = FileId { fs: 3, ino: 0x0102_0304_0506, generation: 7 };
    let answered = ChangeOutcome { is_answered: true, ..ChangeOutcome::default() };
    for outcome in [
        answered,
        ChangeOutcome { is_rejected: true, ..answered },
        ChangeOutcome { made: Some(id), ..answered },
        ChangeOutcome { offset: Some(u64::MAX), ..answered },
        ChangeOutcome { made: Some(id), offset: Some(9), ..answered },
        ChangeOutcome { offset: Some(9), ..ChangeOutcome::default() },
    ] {
        assert_eq!(ChangeOutcome::decode(&outcome.encode()), Some(outcome));
    }
    let bytes = ChangeOutcome { made: Some(id), ..answered }.encode();
    assert_eq!(&bytes[..17], [2, 3, 0, 0, 0, 6, 5, 4, 3, 2, 1, 0, 0, 7, 0, 0, 0]);
    assert_eq!(ChangeOutcome::decode(&bytes[1..]), None);
    assert_eq!(ChangeOutcome::decode(&[16; OUTCOME_BYTES]), None);
}
