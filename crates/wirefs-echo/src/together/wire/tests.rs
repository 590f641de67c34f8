use super::*;
use proptest::prelude::*;

fn header() -> impl Strategy<Value = Header> {
    let members = proptest::collection::btree_set(any::<u16>().prop_map(NodeId), 0..=NODES_MAX);
    let parts = (
        view(),
        view(),
        any::<u16>(),
        any::<[u64; 2]>(),
        proptest::option::of(id()),
        members,
        any::<[bool; 3]>(),
    );
    parts.prop_map(|(view, promised, holder, [turn, room], settled, members, [holds, joins, leaves])| {
        Header { view, promised, members, holder: NodeId(holder), holds, turn, settled, room, joins, leaves }
    })
}

fn view() -> impl Strategy<Value = View> {
    any::<(u64, u16)>().prop_map(|(number, by)| View { number, by: NodeId(by) })
}

fn id() -> impl Strategy<Value = BlockId> {
    (1..u128::MAX).prop_map(BlockId::from)
}

fn ids(most: usize) -> impl Strategy<Value = Vec<BlockId>> {
    proptest::collection::vec(id(), 0..=most)
}

fn body() -> impl Strategy<Value = Body> {
    let members = proptest::collection::btree_set(any::<u16>().prop_map(NodeId), 0..=NODES_MAX);
    let latest = proptest::collection::btree_map(any::<u16>().prop_map(NodeId), id(), 0..=NODES_MAX);
    // Few, since all parts of each message are tried.
    let half = 8;
    prop_oneof![
        Just(Body::Alive),
        Just(Body::Want),
        (proptest::option::of(id()), members.clone()).prop_map(|(root, asked)| Body::Pass { root, asked }),
        (id(), proptest::option::of(ids(half)), ids(half), latest)
            .prop_map(|(root, made, freed, latest)| Body::Root { root, made, freed, latest }),
        id().prop_map(|root| Body::Have { root }),
        ids(half).prop_map(|ids| Body::Lack { ids }),
        (view(), members).prop_map(|(view, members)| Body::Propose { view, members }),
        (view(), view(), proptest::option::of(id()))
            .prop_map(|(view, stand, root)| Body::Agree { view, stand: Stand { view: stand, root } }),
    ]
}

proptest! {
    #[test]
    fn each_message_is_decoded_as_it_was_and_no_part_of_it(header in header(), body in body()) {
        let message = Message { header, body };
        let bytes = encode(&message);
        prop_assert!(bytes.len() <= MESSAGE_BYTES_MAX);
        prop_assert_eq!(decode(&bytes), Some(message));
        for end in 0..bytes.len() {
            prop_assert_eq!(decode(&bytes[..end]), None);
        }
    }

    #[test]
    fn bytes_of_others_are_no_message_or_the_very_same(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Some(message) = decode(&bytes) {
            // Sets may have come in another order.
            prop_assert_eq!(decode(&encode(&message)), Some(message));
        }
    }
}

#[test]
fn root_with_more_blocks_than_fit_has_all_looked_for() {
    let many: Vec<BlockId> = (1..=3 * IDS_MAX as u128).map(BlockId::from).collect();
    let body = |made, freed| Body::Root { root: BlockId::from(7), made, freed, latest: Latest::new() };
    let message = |body| Message { header: Header::default(), body };
    let bytes = encode(&message(body(Some(many.clone()), many.clone())));
    let Some(Message { body: Body::Root { made, freed, .. }, .. }) = decode(&bytes) else { panic!("a root") };
    assert_eq!((made, freed), (None, many[..IDS_MAX].to_vec()));
}

#[test]
fn message_has_the_bytes_that_are_written_down() {
    let header = Header {
        view: View { number: 3, by: NodeId(2) },
        turn: 5,
        room: 9,
        holds: true,
        ..Header::default()
    };
    let members = BTreeSet::from([NodeId(1), NodeId(2)]);
    let message =
        Message { header: Header { members, ..header }, body: Body::Have { root: BlockId::from(0x1_0002) } };
    let mut expected = vec![4, 1, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0];
    expected.extend([0; 12]);
    expected.extend([5, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([0; 16]);
    expected.extend([9, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([2, 1, 0, 2, 0]);
    expected.extend([0; 13]);
    expected.extend([1, 0, 2]);
    assert_eq!(encode(&message), expected);
    assert_eq!(decode(&expected), Some(message));
}
