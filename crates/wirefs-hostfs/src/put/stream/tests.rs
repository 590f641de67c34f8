use super::*;

const MIB: u64 = 1024 * 1024;

/// The ranges that are written back after these writes, each an offset and a count of MiB.
fn given(writes: impl IntoIterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut go = Run::default();
    let steps = writes.into_iter().filter_map(|(offset, count)| go.written(offset * MIB, count * MIB));
    steps.map(|step| (step.start / MIB, step.end / MIB)).collect()
}

#[test]
fn a_sequential_write_is_written_back_in_steps() {
    assert_eq!(given((0..15).map(|at| (at, 1))), [], "what is small is left to the kernel");
    assert_eq!(given((0..32).map(|at| (at, 1))), [(0, 8), (8, 16), (16, 24)]);
    assert_eq!(given((100..124).map(|at| (at, 1))), [(100, 108), (108, 116)], "wherever it begins");
}

#[test]
fn writes_out_of_order_belong_to_one_run() {
    let swapped = (0..32).map(|at| (at ^ 1, 1));
    assert_eq!(given(swapped), [(0, 8), (8, 16), (16, 24)]);
}

#[test]
fn repeated_writes_are_left_to_the_kernel() {
    assert_eq!(given((0..1000).map(|at| (at % 8, 1))), []);
}

#[test]
fn scattered_writes_are_left_to_the_kernel() {
    assert_eq!(given((0..1000).map(|at| (at * 37 % 1000, 1))), [], "far apart");
    assert_eq!(given((0..1000).map(|at| (at * 4, 1))), [], "near, with holes");
}

#[test]
fn largest_offsets_do_not_overflow() {
    let mut go = Run::default();
    for offset in [u64::MAX, u64::MAX - MIB, 0, u64::MAX] {
        assert_eq!(go.written(offset, 2 * MIB), None);
    }
}
