use super::*;
use crate::replication::message::{Latest, MessageBody, MessageHeader};

fn channel(node: u16, instance: u64) -> ControlChannel {
    let address = [10, 0, 0, node as u8];
    ControlChannel::new(EchoKey([7; 32]), ReplicaId(node), InstanceId(instance), address, 1_472).unwrap()
}

/// Exchanges hello packets until neither side has a reply.
fn meet(one: &mut ControlChannel, other: &mut ControlChannel) -> Vec<ControlMessage> {
    let mut packet_to_send = one.hello();
    let mut received = Vec::new();
    for step in 0.. {
        let Some(mut packet) = packet_to_send else { break };
        assert!(step < 6, "the handshake ends");
        let receiver = if step % 2 == 0 { &mut *other } else { &mut *one };
        let message = receiver.open(&mut packet).unwrap();
        packet_to_send = match &message {
            ControlMessage::Hello { reply, .. } => reply.clone(),
            ControlMessage::Replication { .. } | ControlMessage::Block { .. } => panic!("{message:?}"),
        };
        received.push(message);
    }
    received
}

fn message(ids: u128) -> ReplicationMessage {
    let new_blocks = Some((1..=ids).map(EchoBlockId::from).collect());
    let body = MessageBody::PrepareRoot {
        root: EchoBlockId::from(7),
        new_blocks,
        freed: Vec::new(),
        latest: Latest::new(),
    };
    ReplicationMessage { header: MessageHeader::default(), body }
}

#[test]
fn only_greeted_nodes_open_each_others_packets() {
    let (mut one, mut two, mut three) = (channel(1, 11), channel(2, 22), channel(3, 33));
    assert_eq!(one.message(ReplicaId(2), &message(1)), Vec::<Vec<u8>>::new(), "the instance is unknown");
    meet(&mut one, &mut two);
    assert_eq!(
        (one.address(ReplicaId(2)), two.address(ReplicaId(1))),
        (Some([10, 0, 0, 2]), Some([10, 0, 0, 1]))
    );
    for ids in [0, 1, 500, 2_000] {
        let packets = one.message(ReplicaId(2), &message(ids));
        assert!(packets.iter().all(|packet| packet.len() <= 1_472));
        assert!(packets.iter().all(|packet| three.open(&mut packet.clone()).is_none()));
        // The last part arrives first.
        let mut packets: Vec<ControlMessage> =
            packets.into_iter().rev().filter_map(|mut packet| two.open(&mut packet)).collect();
        assert_eq!(
            packets.pop(),
            Some(ControlMessage::Replication { from: ReplicaId(1), message: message(ids) })
        );
        assert!(packets.is_empty());
    }
}

#[test]
fn block_of_one_packet_fits_one_control_packet_and_a_larger_one_needs_several() {
    let (mut one, mut two) = (channel(1, 11), channel(2, 22));
    meet(&mut one, &mut two);
    for (bytes, count) in [(1_472 - OVERHEAD_BYTES, 1), (5_000, 4), (0, 1)] {
        let (id, block) = (EchoBlockId::from(9), Bytes::from(vec![5; bytes]));
        let packets = one.block(ReplicaId(2), id, &block);
        assert_eq!(packets.len(), count);
        let packets: Vec<ControlMessage> =
            packets.into_iter().filter_map(|mut packet| two.open(&mut packet)).collect();
        assert_eq!(packets, [ControlMessage::Block { id, block }]);
    }
}

#[test]
fn packet_is_accepted_once_unmodified_by_its_instance() {
    let (mut one, mut two) = (channel(1, 11), channel(2, 22));
    meet(&mut one, &mut two);
    let packet = one.message(ReplicaId(2), &message(1)).pop().unwrap();
    for place in 0..packet.len() {
        let mut changed = packet.clone();
        changed[place] ^= 1;
        assert_eq!(two.open(&mut changed), None, "byte {place}");
    }
    assert!(two.open(&mut packet.clone()).is_some());
    assert_eq!(two.open(&mut packet.clone()), None, "a replay");
    let mut restarted = channel(2, 23);
    meet(&mut one, &mut restarted);
    assert_eq!(restarted.open(&mut packet.clone()), None, "the packet is for another instance");
}

#[test]
fn restarted_node_is_detected_and_its_former_instance_rejected() {
    let (mut one, mut two) = (channel(1, 11), channel(2, 22));
    // An observer records the packets of the handshake.
    let mut hello = one.hello().unwrap();
    let Some(ControlMessage::Hello { reply: Some(mut old), .. }) = two.open(&mut hello) else {
        panic!("a hello")
    };
    let recorded = old.clone();
    one.open(&mut old).unwrap();
    let mut restarted = channel(2, 23);
    let received = meet(&mut one, &mut restarted);
    assert!(
        received.iter().any(|message| matches!(message, ControlMessage::Hello { is_restarted: true, .. }))
    );
    assert_eq!(one.open(&mut recorded.clone()), None);
    assert!(!one.message(ReplicaId(2), &message(1)).is_empty());
}

#[test]
fn packets_may_be_reordered_within_the_window() {
    let mut seen = ReplayWindow::default();
    let took = [5, 3, 5, 3, 9_000, 4, 8_999, 9_000, 8_999, 809, 808, 807, 1 << 40, 9_001];
    let expected =
        [true, true, false, false, true, false, true, false, false, true, false, false, true, false];
    assert_eq!(took.map(|number| seen.take(number)), expected);
}
