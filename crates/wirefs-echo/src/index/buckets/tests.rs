use std::collections::BTreeMap;

use super::*;
use wirefs_virtual::Dice;

fn numbered(count: u64) -> impl Iterator<Item = EchoBlockId> {
    (0..count).map(|number| EchoBlockId::from(u128::from(number) << 3))
}

#[test]
fn entries_are_found_while_the_table_grows_and_shrinks() {
    let mut table = Buckets::new(18);
    let mut model: BTreeMap<EchoBlockId, u8> = BTreeMap::new();
    let mut dice = Dice::new(1);
    for step in 0..60_000u64 {
        let seed = dice.word();
        let id = EchoBlockId::from(u128::from(seed >> 51) * 0x1_0000_0001);
        // Grows in the first half, shrinks in the second.
        let is_insert =
            seed >> 8 & 3 != if step < 30_000 { 0 } else { 1 } && (step < 30_000 || seed >> 8 & 3 == 0);
        if is_insert {
            let entry = table.insert(id);
            assert_eq!(entry.len(), 18);
            entry[17] = step as u8;
            model.insert(id, step as u8);
        } else {
            table.remove(id);
            model.remove(&id);
        }
        assert_eq!(table.len(), model.len());
    }
    for number in 0..1u64 << 13 {
        let id = EchoBlockId::from(u128::from(number) * 0x1_0000_0001);
        assert_eq!(table.find(id).map(|entry| entry[17]), model.get(&id).copied());
        assert_eq!(table.contains(id), model.contains_key(&id));
    }
    let listed: usize = (0..table.count()).map(|bucket| table.entries_mut(bucket).count()).sum();
    assert_eq!(listed, model.len());
}

#[test]
fn consecutive_ids_are_distributed_uniformly() {
    let mut table = Buckets::new(16);
    for id in numbered(100_000) {
        table.insert(id);
    }
    let fullest = (0..table.count()).map(|bucket| table.entries_mut(bucket).count()).max();
    assert!(fullest < Some(4 * FILL), "{fullest:?}");
}

#[test]
fn each_growth_step_touches_one_bucket() {
    let mut table = Buckets::new(22);
    for id in numbered(20_000) {
        let before = table.count();
        table.insert(id);
        assert!(table.count() - before <= 1);
    }
    assert_eq!(table.count(), 20_000usize.div_ceil(FILL));
}

#[test]
fn memory_follows_the_number_of_entries_down() {
    let mut table = Buckets::new(22);
    for id in numbered(50_000) {
        table.insert(id);
    }
    let full = table.memory_bytes();
    numbered(49_000).for_each(|id| table.remove(id));
    assert!(table.memory_bytes() < full / 20, "{} of {full}", table.memory_bytes());
}
