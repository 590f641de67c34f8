use super::*;
use proptest::prelude::*;

fn written(write: impl FnOnce(&mut Writer)) -> Bytes {
    let mut writer = Writer::new();
    write(&mut writer);
    writer.finish()
}

#[test]
fn numbers_have_golden_bytes() {
    let cases: [(u64, &[u8]); 5] = [
        (0, &[0]),
        (127, &[0x7f]),
        (128, &[0x80, 1]),
        (300, &[0xac, 2]),
        (u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
    ];
    for (number, bytes) in cases {
        assert_eq!(written(|writer| writer.number(number)), bytes);
        assert_eq!(Reader::new(Bytes::from_static(bytes)).number(), Ok(number));
    }
}

#[test]
fn number_has_one_encoding() {
    let refused: [&'static [u8]; 4] = [
        &[0x80, 0],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1],
        &[0x80],
    ];
    for bytes in refused {
        assert!(Reader::new(Bytes::from_static(bytes)).number().is_err(), "{bytes:?}");
    }
}

#[test]
fn id_out_of_range_is_corrupt() {
    let bytes = written(|writer| {
        writer.signed(-5);
        writer.number(0);
    });
    let mut before = 5;
    assert!(Reader::new(bytes).id(&mut before).is_err());
}

proptest! {
    #[test]
    fn values_round_trip(
        number in any::<u64>(),
        signed in any::<i64>(),
        ids in prop::collection::vec((1_u64..1 << 48, any::<u16>()), 0..8),
    ) {
        let ids: Vec<BlockId> = ids.into_iter().filter_map(|(counter, node)| BlockId::new(counter, WriterId(node))).collect();
        let bytes = written(|writer| {
            writer.number(number);
            writer.signed(signed);
            let mut before = 0;
            for id in &ids {
                writer.id(*id, &mut before);
            }
        });
        let mut reader = Reader::new(bytes);
        prop_assert_eq!(reader.number(), Ok(number));
        prop_assert_eq!(reader.signed(), Ok(signed));
        let mut before = 0;
        for id in ids {
            prop_assert_eq!(reader.id(&mut before), Ok(id));
        }
        prop_assert_eq!(reader.end(), Ok(()));
    }
}
