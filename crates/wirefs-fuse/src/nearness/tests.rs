use super::*;
use wirefs_client::call::{Handle, TreeNodeId};

const FLUSH: Call<'static> = Call::Flush { node: TreeNodeId(2), handle: Handle(1), owner: 0 };

fn read(count: u32) -> Call<'static> {
    Call::Read { node: TreeNodeId(2), handle: Handle(1), offset: 0, count }
}

/// At which of so many calls it is looked for the caller.
fn looks(nearness: &mut Nearness, calls: impl Iterator<Item = (u32, Call<'static>)>) -> Vec<usize> {
    calls.enumerate().filter(|(_, (caller, call))| nearness.called(*caller, call)).map(|(at, _)| at).collect()
}

#[test]
fn a_program_that_asks_again_and_again_is_looked_for_ever_more_seldom() {
    let at = looks(&mut Nearness::default(), std::iter::repeat_n((7, FLUSH), 4000));
    assert_eq!(at, [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072]);
}

#[test]
fn programs_that_take_turns_are_not_looked_for() {
    let calls = (0..4000).map(|at| (1 + (at / 4) % 2, FLUSH));
    assert_eq!(looks(&mut Nearness::default(), calls), []);
}

#[test]
fn a_program_that_moves_much_data_is_not_looked_for() {
    let calls = (0..4000).map(|at| (7, if at % 4 == 0 { read(128 * 1024) } else { FLUSH }));
    assert_eq!(looks(&mut Nearness::default(), calls), []);
    let small = (0..12).map(|at| (7, if at % 4 == 0 { read(4096) } else { FLUSH }));
    assert_eq!(looks(&mut Nearness::default(), small).len(), 2);
}

#[test]
fn what_the_kernel_asks_by_itself_counts_for_nobody() {
    let calls = (0..40).map(|at| (if at % 2 == 0 { 7 } else { 0 }, FLUSH));
    assert_eq!(looks(&mut Nearness::default(), calls), [8, 16, 32]);
}

#[test]
fn a_stat_tells_the_processor_behind_any_name() {
    let fields = (3..=52).map(|field| if field == 39 { "5".into() } else { format!("{}", field * 100) });
    let fields: Vec<String> = fields.collect();
    let stat = format!("77 (a) b (c)) {}\n", fields.join(" "));
    assert_eq!(processor_in(stat.as_bytes()), Some(5));
    assert_eq!(processor_in(b"77 (cut) S 1 2"), None);
    assert_eq!(processor_in(b""), None);
}

#[test]
fn this_thread_is_found_and_goes_where_it_is_sent() {
    let own = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
    let allowed = sched_getaffinity(None).unwrap();
    assert!(processor_of(own).is_some_and(|processor| allowed.is_set(processor)));
    go_to(own);
    assert_eq!(sched_getaffinity(None).unwrap(), allowed, "it is held nowhere");
    go_to(u32::MAX);
    assert_eq!(sched_getaffinity(None).unwrap(), allowed);
}
