use super::*;

const BLOCKS: [usize; 4] = [1_000, 10_000, 65_000, 200_000];

fn id(number: usize) -> EchoBlockId {
    EchoBlockId::from(number as u128)
}

#[test]
fn one_copy_takes_at_most_26_bytes_a_block_and_two_take_at_most_32() {
    for (lanes, bytes_max) in [(1, 26.0), (2, 32.0)] {
        let hosts = vec![HostId(3); lanes];
        let mut index = Index::new(lanes);
        let mut worst = 0.0f64;
        for number in 0..BLOCKS[3] {
            index.insert(id(number), &hosts);
            // From a thousand blocks on; with fewer, a few kilobytes do not matter.
            if number >= BLOCKS[0] && number % 97 == 0 {
                worst = worst.max(index.memory_bytes() as f64 / index.len() as f64);
            }
        }
        assert!(worst <= bytes_max, "{lanes} lanes: {worst} bytes a block");
    }
}

#[test]
fn lanes_and_flags_are_stored() {
    let mut index = Index::new(3);
    index.insert(id(7), &[HostId(0), HostId(63), HostId(5)]);
    let mut entry = index.find(id(7)).unwrap();
    assert_eq!(entry.flags(), Flags::default());
    assert_eq!(entry.lane(LaneId(1)), Some(LaneState::Queued { host: HostId(63) }));
    assert_eq!(entry.lane(LaneId(3)), None);
    let states = [
        LaneState::in_flight(HostId(63), PacketSequence(u64::MAX)),
        LaneState::Overdue { host: HostId(1), low: 0x0102_0304 },
        LaneState::Queued { host: HostId(9) },
    ];
    for (number, state) in states.into_iter().enumerate() {
        entry.set_lane(LaneId(number as u8), state);
    }
    entry.set_flags(Flags { is_wanted: true, is_lost: false });
    let entry = index.find(id(7)).unwrap();
    assert_eq!(entry.lanes().map(|(_, lane)| lane).collect::<Vec<_>>(), states);
    assert_eq!(entry.flags(), Flags { is_wanted: true, is_lost: false });
    assert_eq!(entry.id(), id(7));
}

#[test]
fn sweep_visits_every_block_once_per_round() {
    let mut index = Index::new(1);
    (0..1_000).for_each(|number| index.insert(id(number), &[HostId(0)]));
    for _ in 0..2 {
        let mut seen = Vec::new();
        for _ in 0..index.group_count() {
            index.sweep(|entry| seen.push(entry.id()));
        }
        seen.sort();
        assert_eq!(seen, (0..1_000).map(id).collect::<Vec<_>>());
    }
}

#[test]
fn full_sequence_number_is_restored_across_a_wrap_of_the_low_half() {
    let newest = PacketSequence(0x7_0000_0005);
    for back in [0, 1, 5, 6, 100, SEQUENCE_SPAN - 1] {
        let sequence = PacketSequence(newest.0 - back);
        assert_eq!(whole(low_half(sequence), newest), sequence);
        assert!(is_recent(sequence, newest));
    }
    assert!(!is_recent(PacketSequence(newest.0 - SEQUENCE_SPAN), newest));
    assert!(!is_recent(PacketSequence(newest.0 + 1), newest));
}

#[test]
fn ids_are_listed_in_order_in_batches() {
    let mut index = Index::new(1);
    (0..1_000).rev().for_each(|number| index.insert(id(number * 3), &[HostId(0)]));
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let some = index.ids_after(after, 77);
        assert!(some.len() <= 77);
        let Some(&last) = some.last() else { break };
        listed.extend(some);
        after = Some(last);
    }
    assert_eq!(listed, (0..1_000).map(|number| id(number * 3)).collect::<Vec<_>>());
    assert_eq!(index.ids_after(None, 0), []);
}
