use super::*;
use crate::node::tests::world::signer;
use crate::record::tests::signed;

const NOW: Time = Time(1_000_000);
const SUSPICION: Duration = Duration::from_secs(1);

fn table(numbers: &[u8]) -> Table {
    let mut table = Table::default();
    for &number in numbers {
        assert_eq!(table.learn(NOW, signed(number, |_| {})), Learned::Came);
    }
    table.settle_names(Some(&Name::new("own").unwrap()));
    table
}

fn state(table: &Table, number: u8) -> Liveness {
    table.find(&signer(number).0).unwrap().state
}

fn kill(table: &mut Table, key: &NodeKey) {
    assert!(table.claim(NOW, key, 1_000, Liveness::Suspect, SUSPICION));
    assert!(table.give_up(NOW, key));
}

#[test]
fn who_is_called_dead_is_suspected_and_has_its_moment() {
    let mut table = table(&[1]);
    let key = signer(1).0;
    assert!(table.claim(NOW, &key, 1_000, Liveness::Dead, SUSPICION));
    assert_eq!(state(&table, 1), Liveness::Suspect);
    let soon = NOW + SUSPICION / 2;
    assert!(!table.claim(soon, &key, 1_000, Liveness::Dead, SUSPICION), "said again it is no more");
    assert!(table.overdue(soon).is_empty());
    assert_eq!(table.overdue(NOW + SUSPICION), [key]);
    let refuted = table.learn(soon, signed(1, |record| record.incarnation = 1_001));
    assert_eq!(refuted, Learned::Newer { refuted: true });
}

#[test]
fn a_claim_counts_for_the_incarnation_that_is_known_and_for_no_other() {
    let mut table = table(&[1]);
    let key = signer(1).0;
    for incarnation in [999, 1_001, u64::MAX] {
        assert!(!table.claim(NOW, &key, incarnation, Liveness::Dead, SUSPICION));
    }
    assert!(table.claim(NOW, &key, 1_000, Liveness::Suspect, SUSPICION));
    assert!(!table.claim(NOW, &key, 1_000, Liveness::Suspect, SUSPICION), "once is enough");
    assert!(table.overdue(NOW).is_empty());
    assert_eq!(table.overdue(NOW + SUSPICION), [key]);
    assert!(table.give_up(NOW, &key));
    assert!(!table.give_up(NOW, &key), "once is enough");
    assert!(!table.claim(NOW, &key, 1_000, Liveness::Left, SUSPICION), "only itself says so");
}

#[test]
fn a_higher_incarnation_refutes_and_brings_back_and_an_old_record_does_neither() {
    let mut table = table(&[1]);
    let key = signer(1).0;
    kill(&mut table, &key);
    assert_eq!(table.learn(NOW, signed(1, |record| record.edition = 2)), Learned::Old);
    assert_eq!(table.learn(NOW, signed(1, |record| record.edition = 9)), Learned::Same);
    assert_eq!(state(&table, 1), Liveness::Dead, "of the same life");
    let stolen = {
        let mut stolen = signed(1, |record| record.incarnation = 1_001);
        *stolen.bytes.last_mut().unwrap() ^= 1;
        stolen
    };
    assert_eq!(table.learn(NOW, stolen), Learned::Forged);
    assert_eq!(table.learn(NOW, signed(1, |record| record.incarnation = 1_001)), Learned::Came);
    assert_eq!(state(&table, 1), Liveness::Alive);
    table.claim(NOW, &key, 1_001, Liveness::Suspect, SUSPICION);
    let refuted = table.learn(NOW, signed(1, |record| record.incarnation = 1_002));
    assert_eq!(refuted, Learned::Newer { refuted: true });
}

#[test]
fn a_full_table_forgets_the_dead_and_never_the_living() {
    let mut table = table(&[]);
    for number in 0..u8::try_from(NODES_MAX - 1).unwrap() {
        table.learn(NOW, signed(number, |_| {}));
    }
    assert_eq!(table.len(), NODES_MAX - 1);
    assert_eq!(table.learn(NOW, signed(255, |_| {})), Learned::Full);
    kill(&mut table, &signer(7).0);
    assert_eq!(table.learn_passed_on(NOW, signed(255, |_| {})), Learned::Full, "it is to come itself");
    let newer = signed(8, |record| record.edition += 1);
    assert_eq!(table.learn_passed_on(NOW, newer), Learned::Newer { refuted: false });
    assert_eq!(table.learn(NOW, signed(255, |_| {})), Learned::Came);
    assert!(table.find(&signer(7).0).is_none());
    assert_eq!(table.len(), NODES_MAX - 1);
}

#[test]
fn a_name_stays_with_its_holder_and_goes_on_when_that_is_dead() {
    let own = Name::new("own").unwrap();
    let mut table = table(&[1]);
    // Another, which says that it was there before.
    let rival = signed(2, |record| {
        record.name = Name::new("linus1").unwrap();
        record.born = 1;
    });
    table.learn(NOW, rival);
    table.settle_names(Some(&own));
    let holder = |table: &Table| table.holder(&Name::new("linus1").unwrap()).map(|m| m.record().key);
    assert_eq!(holder(&table), Some(signer(1).0));
    kill(&mut table, &signer(1).0);
    table.settle_names(Some(&own));
    assert_eq!(holder(&table), Some(signer(2).0));
    table.learn(NOW, signed(1, |record| record.incarnation = 2_000));
    table.settle_names(Some(&own));
    assert_eq!(holder(&table), Some(signer(2).0), "it was away");
}

#[test]
fn who_takes_another_name_does_not_take_it_from_its_holder() {
    let own = Name::new("own").unwrap();
    // The greater key is not the better one, either way around.
    for (holder, thief) in [(1, 2), (2, 1)] {
        let mut table = table(&[1, 2]);
        let name = Name::new(&format!("linus{holder}")).unwrap();
        let renamed = signed(thief, |record| {
            record.name = name.clone();
            record.edition += 1;
            record.born = 1;
        });
        assert_eq!(table.learn(NOW, renamed), Learned::Newer { refuted: false });
        table.settle_names(Some(&own));
        assert_eq!(table.holder(&name).unwrap().record().key, signer(holder).0);
        assert_eq!(table.iter().filter(|(_, member)| member.holds_name).count(), 1);
    }
}

#[test]
fn the_dead_are_forgotten_after_an_hour() {
    let mut table = table(&[1, 2]);
    kill(&mut table, &signer(1).0);
    assert!(table.forget(NOW).is_empty());
    assert_eq!(table.forget(NOW + DEAD_KEPT), [signer(1).0]);
    assert_eq!(table.len(), 1);
}
