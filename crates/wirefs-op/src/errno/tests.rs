use super::Errno;
use std::collections::BTreeSet;

#[test]
fn error_numbers_round_trip() {
    for errno in Errno::ALL {
        assert_eq!(Errno::from_code(errno.code()), errno);
    }
    let numbers: BTreeSet<u16> = Errno::ALL.into_iter().map(Errno::code).collect();
    assert_eq!(numbers.len(), Errno::ALL.len());
}

#[test]
fn unknown_numbers_are_input_output_errors() {
    for code in [0, 3, 133, u16::MAX] {
        assert_eq!(Errno::from_code(code), Errno::Io);
    }
}
