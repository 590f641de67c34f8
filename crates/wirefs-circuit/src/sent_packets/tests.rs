use super::*;
use crate::address::{CircuitClass, Side};
use crate::wire::part::{Part, Parts};
use crate::wire::writer::Writer;

fn content(number: u16) -> SentPart {
    SentPart::Credit(CircuitNumber::new(Side::Initiator, CircuitClass::Bulk, 0, number))
}

fn packets_sent(count: u16) -> SentPackets {
    let mut packets = SentPackets::new();
    for number in 0..count {
        let mut contents = SentParts::default();
        contents.push(content(number));
        packets.push(
            Time(0),
            100,
            Purpose::AckEliciting,
            contents,
            RateSnapshot::default(),
            &mut DeliveryReport::default(),
        );
    }
    packets
}

fn acknowledge(
    packets: &mut SentPackets,
    now: Time,
    ranges: &[(u64, u64)],
) -> Result<DeliveryReport, UnsentPacketAcked> {
    let mut room = [0; 200];
    let mut writer = Writer::new(&mut room);
    writer.ack(0, Duration::ZERO, ranges.iter().copied());
    let Some(Ok(Part::Ack(ack))) = Parts::new(&room).next() else { panic!("not an ack part") };
    let mut report = DeliveryReport::default();
    packets.acknowledge(now, &ack, &Rtt::new(), &mut report).map(|()| report)
}

#[test]
fn packet_threshold_and_time_threshold_declare_losses() {
    let mut packets = packets_sent(10);
    let report = acknowledge(&mut packets, Time(1), &[(4, 5)]).unwrap();
    assert_eq!(report.arrived, [content(5), content(4)]);
    assert_eq!(report.lost, [content(0), content(1), content(2)]);
    assert_eq!((report.arrived_bytes, report.lost_bytes), (200, 300));
    assert_eq!(packets.bytes_in_flight(), 500);
    let due = packets.loss_at().unwrap();
    let mut report = DeliveryReport::default();
    packets.detect_losses(due, &Rtt::new(), &mut report);
    assert_eq!(report.lost, [content(3)], "lost by the time threshold");
}

#[test]
fn spurious_loss_raises_the_packet_threshold() {
    let mut packets = packets_sent(20);
    assert_eq!(acknowledge(&mut packets, Time(1), &[(5, 5)]).unwrap().lost.len(), 3);
    let report = acknowledge(&mut packets, Time(2), &[(0, 5)]).unwrap();
    assert_eq!(report.arrived.len(), 5);
    // The observed reordering of twenty packets is the new threshold.
    assert_eq!(acknowledge(&mut packets, Time(3), &[(19, 19)]).unwrap().lost, []);
}

#[test]
fn ack_of_an_unsent_packet_is_an_error_and_a_repeated_ack_is_ignored() {
    let mut packets = packets_sent(3);
    assert_eq!(acknowledge(&mut packets, Time(1), &[(3, 3)]).err(), Some(UnsentPacketAcked));
    assert_eq!(acknowledge(&mut packets, Time(1), &[(0, 2)]).unwrap().arrived.len(), 3);
    let again = acknowledge(&mut packets, Time(1), &[(0, 2)]).unwrap();
    assert!(!again.has_new_acks());
    assert!(packets.is_empty() && packets.held() == 0);
}

#[test]
fn lost_packets_leave_space_for_new_ones() {
    let mut packets = packets_sent(SENT_PACKETS_MAX as u16 - 1);
    assert!(packets.is_full());
    let mut report = DeliveryReport::default();
    packets.declare_lost(usize::MAX, &mut report);
    assert_eq!(report.lost.len(), SENT_PACKETS_MAX - 1);
    assert!(!packets.is_full() && packets.is_empty());
    // Ack-only packets never fill it up, although the first packet is still in flight.
    let mut packets = packets_sent(1);
    for _ in 0..SENT_PACKETS_MAX * 2 {
        packets.push(
            Time(0),
            50,
            Purpose::AckOnly,
            SentParts::default(),
            RateSnapshot::default(),
            &mut report,
        );
    }
    assert!(packets.held() <= SENT_PACKETS_MAX);
}
