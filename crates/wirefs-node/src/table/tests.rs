use super::*;
use crate::node::tests::network::signer;
use crate::record::tests::signed;

const NOW: Time = Time(1_000_000);
const SUSPICION: Duration = Duration::from_secs(1);

fn table(numbers: &[u8]) -> MemberTable {
    let mut table = MemberTable::default();
    for &number in numbers {
        assert_eq!(table.merge_own(NOW, signed(number, |_| {})), RecordOutcome::Joined);
    }
    table.assign_names(Some(&NodeName::new("own").unwrap()));
    table
}

fn state(table: &MemberTable, number: u8) -> Liveness {
    table.find(&signer(number).0).unwrap().state
}

fn kill(table: &mut MemberTable, key: &NodeKey) {
    assert!(table.merge_claim(NOW, key, 1_000, Liveness::Suspect, SUSPICION));
    assert!(table.declare_dead(NOW, key));
}

#[test]
fn claim_of_death_starts_the_suspicion_timeout() {
    let mut table = table(&[1]);
    let key = signer(1).0;
    assert!(table.merge_claim(NOW, &key, 1_000, Liveness::Dead, SUSPICION));
    assert_eq!(state(&table, 1), Liveness::Suspect);
    let soon = NOW + SUSPICION / 2;
    assert!(
        !table.merge_claim(soon, &key, 1_000, Liveness::Dead, SUSPICION),
        "a repeated claim changes nothing"
    );
    assert!(table.expired_suspects(soon).is_empty());
    assert_eq!(table.expired_suspects(NOW + SUSPICION), [key]);
    let refuted = table.merge_own(soon, signed(1, |record| record.incarnation = 1_001));
    assert_eq!(refuted, RecordOutcome::Updated { refuted: true });
}

#[test]
fn claim_counts_only_for_the_known_incarnation() {
    let mut table = table(&[1]);
    let key = signer(1).0;
    for incarnation in [999, 1_001, u64::MAX] {
        assert!(!table.merge_claim(NOW, &key, incarnation, Liveness::Dead, SUSPICION));
    }
    assert!(table.merge_claim(NOW, &key, 1_000, Liveness::Suspect, SUSPICION));
    assert!(!table.merge_claim(NOW, &key, 1_000, Liveness::Suspect, SUSPICION), "once is enough");
    assert!(table.expired_suspects(NOW).is_empty());
    assert_eq!(table.expired_suspects(NOW + SUSPICION), [key]);
    assert!(table.declare_dead(NOW, &key));
    assert!(!table.declare_dead(NOW, &key), "once is enough");
    assert!(
        !table.merge_claim(NOW, &key, 1_000, Liveness::Left, SUSPICION),
        "only the node itself can leave"
    );
}

#[test]
fn higher_incarnation_refutes_and_revives_and_old_record_does_neither() {
    let mut table = table(&[1]);
    let key = signer(1).0;
    kill(&mut table, &key);
    assert_eq!(table.merge_own(NOW, signed(1, |record| record.edition = 2)), RecordOutcome::Stale);
    assert_eq!(table.merge_own(NOW, signed(1, |record| record.edition = 9)), RecordOutcome::Unchanged);
    assert_eq!(state(&table, 1), Liveness::Dead, "same incarnation");
    let stolen = {
        let mut stolen = signed(1, |record| record.incarnation = 1_001);
        *stolen.bytes.last_mut().unwrap() ^= 1;
        stolen
    };
    assert_eq!(table.merge_own(NOW, stolen), RecordOutcome::BadSignature);
    assert_eq!(table.merge_own(NOW, signed(1, |record| record.incarnation = 1_001)), RecordOutcome::Joined);
    assert_eq!(state(&table, 1), Liveness::Alive);
    table.merge_claim(NOW, &key, 1_001, Liveness::Suspect, SUSPICION);
    let refuted = table.merge_own(NOW, signed(1, |record| record.incarnation = 1_002));
    assert_eq!(refuted, RecordOutcome::Updated { refuted: true });
}

#[test]
fn full_table_evicts_dead_nodes_only() {
    let mut table = table(&[]);
    for number in 0..u8::try_from(NODES_MAX - 1).unwrap() {
        table.merge_own(NOW, signed(number, |_| {}));
    }
    assert_eq!(table.len(), NODES_MAX - 1);
    assert_eq!(table.merge_own(NOW, signed(255, |_| {})), RecordOutcome::TableFull);
    kill(&mut table, &signer(7).0);
    assert_eq!(
        table.merge_relayed(NOW, signed(255, |_| {})),
        RecordOutcome::TableFull,
        "only for a node that announced itself"
    );
    let newer = signed(8, |record| record.edition += 1);
    assert_eq!(table.merge_relayed(NOW, newer), RecordOutcome::Updated { refuted: false });
    assert_eq!(table.merge_own(NOW, signed(255, |_| {})), RecordOutcome::Joined);
    assert!(table.find(&signer(7).0).is_none());
    assert_eq!(table.len(), NODES_MAX - 1);
}

#[test]
fn name_stays_with_its_holder_until_that_is_dead() {
    let own = NodeName::new("own").unwrap();
    let mut table = table(&[1]);
    // Another node, with an earlier start time.
    let rival = signed(2, |record| {
        record.name = NodeName::new("linus1").unwrap();
        record.born = 1;
    });
    table.merge_own(NOW, rival);
    table.assign_names(Some(&own));
    let holder =
        |table: &MemberTable| table.holder(&NodeName::new("linus1").unwrap()).map(|m| m.record().key);
    assert_eq!(holder(&table), Some(signer(1).0));
    kill(&mut table, &signer(1).0);
    table.assign_names(Some(&own));
    assert_eq!(holder(&table), Some(signer(2).0));
    table.merge_own(NOW, signed(1, |record| record.incarnation = 2_000));
    table.assign_names(Some(&own));
    assert_eq!(holder(&table), Some(signer(2).0), "it was down");
}

#[test]
fn renamed_node_does_not_take_a_held_name() {
    let own = NodeName::new("own").unwrap();
    // The key order does not decide, either way around.
    for (holder, thief) in [(1, 2), (2, 1)] {
        let mut table = table(&[1, 2]);
        let name = NodeName::new(&format!("linus{holder}")).unwrap();
        let renamed = signed(thief, |record| {
            record.name = name.clone();
            record.edition += 1;
            record.born = 1;
        });
        assert_eq!(table.merge_own(NOW, renamed), RecordOutcome::Updated { refuted: false });
        table.assign_names(Some(&own));
        assert_eq!(table.holder(&name).unwrap().record().key, signer(holder).0);
        assert_eq!(table.iter().filter(|(_, member)| member.holds_name).count(), 1);
    }
}

#[test]
fn dead_nodes_are_removed_after_an_hour() {
    let mut table = table(&[1, 2]);
    kill(&mut table, &signer(1).0);
    assert!(table.remove_expired(NOW).is_empty());
    assert_eq!(table.remove_expired(NOW + DEAD_KEPT), [signer(1).0]);
    assert_eq!(table.len(), 1);
}
