use super::*;
use crate::address::{Class, Side};
use crate::wire::part::{Part, Parts};
use crate::wire::writer::Writer;

fn content(number: u16) -> Content {
    Content::Credit(Number::new(Side::Dialler, Class::Bulk, 0, number))
}

fn flight(packets: u16) -> Flight {
    let mut flight = Flight::new();
    for number in 0..packets {
        let mut contents = Contents::default();
        contents.push(content(number));
        flight.push(Time(0), 100, Purpose::Asking, contents, Mark::default(), &mut Report::default());
    }
    flight
}

fn acknowledge(flight: &mut Flight, now: Time, runs: &[(u64, u64)]) -> Result<Report, NeverSent> {
    let mut room = [0; 200];
    let mut writer = Writer::new(&mut room);
    writer.ack(0, Duration::ZERO, runs.iter().copied());
    let Some(Ok(Part::Ack(ack))) = Parts::new(&room).next() else { panic!("it is one") };
    let mut report = Report::default();
    flight.acknowledge(now, &ack, &Rtt::new(), &mut report).map(|()| report)
}

#[test]
fn packet_that_three_overtook_is_lost_and_those_before_them_are_waited_for() {
    let mut flight = flight(10);
    let report = acknowledge(&mut flight, Time(1), &[(4, 5)]).unwrap();
    assert_eq!(report.arrived, [content(5), content(4)]);
    assert_eq!(report.lost, [content(0), content(1), content(2)]);
    assert_eq!((report.arrived_bytes, report.lost_bytes), (200, 300));
    assert_eq!(flight.flying_bytes(), 500);
    let due = flight.loss_at().unwrap();
    let mut report = Report::default();
    flight.detect(due, &Rtt::new(), &mut report);
    assert_eq!(report.lost, [content(3)], "its age tells");
}

#[test]
fn lost_packet_that_arrives_after_all_makes_the_path_patient() {
    let mut flight = flight(20);
    assert_eq!(acknowledge(&mut flight, Time(1), &[(5, 5)]).unwrap().lost.len(), 3);
    let report = acknowledge(&mut flight, Time(2), &[(0, 5)]).unwrap();
    assert_eq!(report.arrived.len(), 5);
    // What twenty overtook was not lost: fewer than that say nothing from now on.
    assert_eq!(acknowledge(&mut flight, Time(3), &[(19, 19)]).unwrap().lost, []);
}

#[test]
fn acknowledging_what_was_never_sent_is_a_lie_and_twice_is_nothing() {
    let mut flight = flight(3);
    assert_eq!(acknowledge(&mut flight, Time(1), &[(3, 3)]).err(), Some(NeverSent));
    assert_eq!(acknowledge(&mut flight, Time(1), &[(0, 2)]).unwrap().arrived.len(), 3);
    let again = acknowledge(&mut flight, Time(1), &[(0, 2)]).unwrap();
    assert!(!again.is_news());
    assert!(flight.is_empty() && flight.held() == 0);
}

#[test]
fn lost_ones_leave_room_for_new_ones() {
    let mut flight = flight(FLIGHT_PACKETS_MAX as u16 - 1);
    assert!(flight.is_full());
    let mut report = Report::default();
    flight.give_up(usize::MAX, &mut report);
    assert_eq!(report.lost.len(), FLIGHT_PACKETS_MAX - 1);
    assert!(!flight.is_full() && flight.is_empty());
    // Silent ones never fill it up, though the first still flies.
    let mut flight = self::flight(1);
    for _ in 0..FLIGHT_PACKETS_MAX * 2 {
        flight.push(Time(0), 50, Purpose::Silent, Contents::default(), Mark::default(), &mut report);
    }
    assert!(flight.held() <= FLIGHT_PACKETS_MAX);
}
