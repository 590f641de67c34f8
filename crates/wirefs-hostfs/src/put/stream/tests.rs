use super::*;

const MIB: u64 = 1024 * 1024;

/// What the disk was given after these writes, each an offset and a count of MiB.
fn given(writes: impl IntoIterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut go = Go::default();
    let steps = writes.into_iter().filter_map(|(offset, count)| go.wrote(offset * MIB, count * MIB));
    steps.map(|step| (step.start / MIB, step.end / MIB)).collect()
}

#[test]
fn a_file_written_in_one_go_is_begun_step_by_step() {
    assert_eq!(given((0..15).map(|at| (at, 1))), [], "what is small is left to the kernel");
    assert_eq!(given((0..32).map(|at| (at, 1))), [(0, 8), (8, 16), (16, 24)]);
    assert_eq!(given((100..124).map(|at| (at, 1))), [(100, 108), (108, 116)], "wherever it begins");
}

#[test]
fn writes_that_overtake_each_other_are_of_one_go() {
    let swapped = (0..32).map(|at| (at ^ 1, 1));
    assert_eq!(given(swapped), [(0, 8), (8, 16), (16, 24)]);
}

#[test]
fn what_is_written_again_and_again_is_left_to_the_kernel() {
    assert_eq!(given((0..1000).map(|at| (at % 8, 1))), []);
}

#[test]
fn scattered_writes_are_left_to_the_kernel() {
    assert_eq!(given((0..1000).map(|at| (at * 37 % 1000, 1))), [], "far apart");
    assert_eq!(given((0..1000).map(|at| (at * 4, 1))), [], "near, with holes");
}

#[test]
fn offsets_at_the_end_of_all_numbers_overflow_nothing() {
    let mut go = Go::default();
    for offset in [u64::MAX, u64::MAX - MIB, 0, u64::MAX] {
        assert_eq!(go.wrote(offset, 2 * MIB), None);
    }
}
