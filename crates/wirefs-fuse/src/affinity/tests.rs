use super::*;
use wirefs_client::call::{Handle, TreeNodeId};

const FLUSH: Call<'static> = Call::Flush { node: TreeNodeId(2), handle: Handle(1), owner: 0 };

fn read(count: u32) -> Call<'static> {
    Call::Read { node: TreeNodeId(2), handle: Handle(1), offset: 0, count }
}

/// The calls after which the caller's CPU is checked.
fn due_calls(affinity: &mut CallerAffinity, calls: impl Iterator<Item = (u32, Call<'static>)>) -> Vec<usize> {
    calls.enumerate().filter(|(_, (caller, call))| affinity.called(*caller, call)).map(|(at, _)| at).collect()
}

#[test]
fn checks_become_rarer_with_each_call_of_one_program() {
    let at = due_calls(&mut CallerAffinity::default(), std::iter::repeat_n((7, FLUSH), 4000));
    assert_eq!(at, [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072]);
}

#[test]
fn alternating_programs_cause_no_check() {
    let calls = (0..4000).map(|at| (1 + (at / 4) % 2, FLUSH));
    assert_eq!(due_calls(&mut CallerAffinity::default(), calls), []);
}

#[test]
fn calls_with_much_data_cause_no_check() {
    let calls = (0..4000).map(|at| (7, if at % 4 == 0 { read(128 * 1024) } else { FLUSH }));
    assert_eq!(due_calls(&mut CallerAffinity::default(), calls), []);
    let small = (0..12).map(|at| (7, if at % 4 == 0 { read(4096) } else { FLUSH }));
    assert_eq!(due_calls(&mut CallerAffinity::default(), small).len(), 2);
}

#[test]
fn the_kernels_own_calls_do_not_count() {
    let calls = (0..40).map(|at| (if at % 2 == 0 { 7 } else { 0 }, FLUSH));
    assert_eq!(due_calls(&mut CallerAffinity::default(), calls), [8, 16, 32]);
}

#[test]
fn the_cpu_is_found_after_any_name() {
    let fields = (3..=52).map(|field| if field == 39 { "5".into() } else { format!("{}", field * 100) });
    let fields: Vec<String> = fields.collect();
    let stat = format!("77 (a) b (c)) {}\n", fields.join(" "));
    assert_eq!(processor_in(stat.as_bytes()), Some(5));
    assert_eq!(processor_in(b"77 (cut) S 1 2"), None);
    assert_eq!(processor_in(b""), None);
}

#[test]
fn the_thread_moves_to_the_cpu_of_its_caller() {
    let own = u32::try_from(gettid().as_raw_nonzero().get()).unwrap();
    let allowed = sched_getaffinity(None).unwrap();
    assert!(processor_of(own).is_some_and(|processor| allowed.is_set(processor)));
    let elsewhere = |caller| Move { thread: gettid(), processor: usize::MAX, caller };
    assert_eq!(carry_out(&elsewhere(own)), Some(()));
    assert_eq!(sched_getaffinity(None).unwrap(), allowed, "it is held nowhere");
    assert_eq!(carry_out(&elsewhere(u32::MAX)), None);
    assert_eq!(sched_getaffinity(None).unwrap(), allowed);
}

#[test]
fn a_move_is_skipped_while_another_one_waits() {
    let (sender, moves) = mpsc::sync_channel(1);
    let mover = Mover(sender);
    (7..10).for_each(|caller| mover.move_to(caller));
    assert_eq!(moves.try_iter().map(|next| next.caller).collect::<Vec<_>>(), [7]);
}
