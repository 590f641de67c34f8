use super::*;
use proptest::prelude::*;

fn header() -> impl Strategy<Value = MessageHeader> {
    let members = proptest::collection::btree_set(any::<u16>().prop_map(ReplicaId), 0..=REPLICAS_MAX);
    let parts = (
        view(),
        view(),
        any::<u16>(),
        any::<[u64; 2]>(),
        proptest::option::of(id()),
        members,
        any::<[bool; 3]>(),
    );
    parts.prop_map(
        |(
            view,
            prepared_view,
            holder,
            [token_epoch, free_blocks],
            committed_root,
            members,
            [holds_token, wants_to_join, wants_to_leave],
        )| {
            MessageHeader {
                view,
                prepared_view,
                members,
                holder: ReplicaId(holder),
                holds_token,
                token_epoch,
                committed_root,
                free_blocks,
                wants_to_join,
                wants_to_leave,
            }
        },
    )
}

fn view() -> impl Strategy<Value = ViewId> {
    any::<(u64, u16)>().prop_map(|(number, proposer)| ViewId { number, proposer: ReplicaId(proposer) })
}

fn id() -> impl Strategy<Value = EchoBlockId> {
    (1..u128::MAX).prop_map(EchoBlockId::from)
}

fn ids(max: usize) -> impl Strategy<Value = Vec<EchoBlockId>> {
    proptest::collection::vec(id(), 0..=max)
}

fn body() -> impl Strategy<Value = MessageBody> {
    let members = proptest::collection::btree_set(any::<u16>().prop_map(ReplicaId), 0..=REPLICAS_MAX);
    let latest = proptest::collection::btree_map(any::<u16>().prop_map(ReplicaId), id(), 0..=REPLICAS_MAX);
    // Few, because all prefixes of each message are decoded.
    let half = 8;
    prop_oneof![
        Just(MessageBody::Heartbeat),
        Just(MessageBody::RequestToken),
        (proptest::option::of(id()), members.clone())
            .prop_map(|(root, requests)| MessageBody::TransferToken { root, requests }),
        (id(), proptest::option::of(ids(half)), ids(half), latest).prop_map(
            |(root, new_blocks, freed, latest)| MessageBody::PrepareRoot { root, new_blocks, freed, latest }
        ),
        id().prop_map(|root| MessageBody::AcceptRoot { root }),
        ids(half).prop_map(|ids| MessageBody::RequestBlocks { ids }),
        (view(), members).prop_map(|(view, members)| MessageBody::ProposeView { view, members }),
        (view(), view(), proptest::option::of(id())).prop_map(|(view, accepted, root)| {
            MessageBody::AcceptView { view, accepted: AcceptedState { view: accepted, root } }
        }),
    ]
}

proptest! {
    #[test]
    fn each_message_survives_encoding_and_no_prefix_is_valid(header in header(), body in body()) {
        let message = ReplicationMessage { header, body };
        let bytes = encode(&message);
        prop_assert!(bytes.len() <= MESSAGE_BYTES_MAX);
        prop_assert_eq!(decode(&bytes), Some(message));
        for end in 0..bytes.len() {
            prop_assert_eq!(decode(&bytes[..end]), None);
        }
    }

    #[test]
    fn arbitrary_bytes_are_rejected_or_decode_to_an_equal_message(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Some(message) = decode(&bytes) {
            // Sets may be in another order.
            prop_assert_eq!(decode(&encode(&message)), Some(message));
        }
    }
}

#[test]
fn root_with_too_many_blocks_is_encoded_without_a_list() {
    let many: Vec<EchoBlockId> = (1..=3 * IDS_MAX as u128).map(EchoBlockId::from).collect();
    let body = |new_blocks, freed| MessageBody::PrepareRoot {
        root: EchoBlockId::from(7),
        new_blocks,
        freed,
        latest: Latest::new(),
    };
    let message = |body| ReplicationMessage { header: MessageHeader::default(), body };
    let bytes = encode(&message(body(Some(many.clone()), many.clone())));
    let Some(ReplicationMessage { body: MessageBody::PrepareRoot { new_blocks, freed, .. }, .. }) =
        decode(&bytes)
    else {
        panic!("a root")
    };
    assert_eq!((new_blocks, freed), (None, many[..IDS_MAX].to_vec()));
}

#[test]
fn message_has_golden_bytes() {
    let header = MessageHeader {
        view: ViewId { number: 3, proposer: ReplicaId(2) },
        token_epoch: 5,
        free_blocks: 9,
        holds_token: true,
        ..MessageHeader::default()
    };
    let members = BTreeSet::from([ReplicaId(1), ReplicaId(2)]);
    let message = ReplicationMessage {
        header: MessageHeader { members, ..header },
        body: MessageBody::AcceptRoot { root: EchoBlockId::from(0x1_0002) },
    };
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
