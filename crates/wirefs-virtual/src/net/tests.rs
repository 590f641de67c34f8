use super::*;

const FAULTS: PacketFaults = PacketFaults {
    loss: PARTS / 10,
    duplication: PARTS / 5,
    reordering: PARTS / 10,
    delay_us: (100, 200),
    late_us: (1_000, 2_000),
};

#[test]
fn packets_are_lost_duplicated_and_reordered_at_their_rates() {
    let (net, mut dice) = (PacketNet::new(FAULTS), Dice::new(1));
    let delays: Vec<Vec<Duration>> = (0..10_000).map(|_| net.delays(&mut dice, 1, 2)).collect();
    let lost = delays.iter().filter(|delays| delays.is_empty()).count();
    let twice = delays.iter().filter(|delays| delays.len() == 2).count();
    let late = delays.iter().flatten().filter(|delay| **delay >= Duration::from_micros(1_000)).count();
    assert!((700..1_000).contains(&lost) && (1_400..1_900).contains(&twice), "{lost} {twice}");
    assert!((850..1_300).contains(&late), "{late}");
}

#[test]
fn cut_directions_lose_all_packets_until_they_are_healed() {
    let (mut net, mut dice) = (PacketNet::new(PacketFaults { loss: 0, ..FAULTS }), Dice::new(1));
    net.cut(1, 2);
    assert!(net.delays(&mut dice, 1, 2).is_empty() && !net.delays(&mut dice, 2, 1).is_empty());
    net.partition(1, 2);
    assert!(net.delays(&mut dice, 2, 1).is_empty());
    net.heal();
    assert!(!net.delays(&mut dice, 1, 2).is_empty());
}

#[test]
fn urgent_messages_overtake_others_and_are_not_overtaken() {
    let mut lanes = TwoLanes::default();
    assert_eq!(lanes.arrives(Time(9), false), Time(9));
    assert_eq!(lanes.arrives(Time(5), true), Time(5));
    assert_eq!(lanes.arrives(Time(12), true), Time(12));
    assert_eq!(lanes.arrives(Time(10), false), Time(12));
    assert_eq!((lanes.last_urgent(), lanes.last_other()), (Time(12), Time(12)));
}
