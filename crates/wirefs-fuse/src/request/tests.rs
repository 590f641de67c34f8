//! Golden bytes of a little-endian Linux; random bytes cause no panic.

mod attribute;
mod directory;
mod file;
mod lock;
mod namespace;

use super::{Body, Dialect, MalformedRequest, RequestHeader, decode};
use crate::answer::Expects;
use proptest::prelude::*;
use wirefs_client::call::{Call, CallId, Caller, Handle, TreeNodeId};
use wirefs_op::Errno;

const PLAIN: Dialect = Dialect { setxattr_ext: false, statx: false, no_opendir: false };
const NODE: TreeNodeId = TreeNodeId(0x22);
const HANDLE: Handle = Handle(0x0403_0201);

/// Hexadecimal digits, with spaces for legibility; `'x'` is a literal letter, `.` a NUL.
fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for word in text.split_whitespace() {
        match word.strip_prefix('\'').and_then(|word| word.strip_suffix('\'')) {
            Some(letters) => out.extend(letters.bytes()),
            None if word == "." => out.push(0),
            None => {
                for pair in word.as_bytes().chunks(2) {
                    let pair = std::str::from_utf8(pair).expect("ASCII");
                    out.push(u8::from_str_radix(pair, 16).expect("hexadecimal"));
                }
            }
        }
    }
    out
}

/// A request of caller 1000:100, process 77, call 17, on node 0x22.
fn request(opcode: u32, operands: &str) -> Vec<u8> {
    let operands = bytes(operands);
    let mut out = u32::try_from(40 + operands.len()).expect("short").to_le_bytes().to_vec();
    out.extend(opcode.to_le_bytes());
    out.extend(bytes("1100000000000000 2200000000000000 e8030000 64000000 4d000000 0000 0000"));
    out.extend(operands);
    out
}

/// Decodes a request that is a call.
fn decoded(opcode: u32, operands: &str, dialect: Dialect, check: impl FnOnce(Call<'_>, Expects)) {
    let request = request(opcode, operands);
    match decode(&request, dialect) {
        Ok((_, Body::Call(call, expects))) => check(call, expects),
        other => panic!("opcode {opcode}: {other:?}"),
    }
}

fn expect(opcode: u32, operands: &str, call: Call<'_>, expects: Expects) {
    decoded(opcode, operands, PLAIN, |decoded_call, decoded_expects| {
        assert_eq!(decoded_call, call);
        assert_eq!(decoded_expects, expects);
    });
}

#[test]
fn a_whole_lookup_decodes_to_its_header_and_call() {
    let lookup = bytes(
        "2c000000 01000000 1100000000000000 0100000000000000 e8030000 64000000 4d000000 0000 0000 'a' ff 'b' .",
    );
    let (header, body) = decode(&lookup, PLAIN).expect("well formed");
    let caller = Caller { uid: 1000, gid: 100, pid: 77 };
    assert_eq!(header, RequestHeader { opcode: 1, call: CallId(17), node: TreeNodeId(1), caller });
    assert_eq!(body, Body::Call(Call::Lookup { parent: TreeNodeId(1), name: b"a\xffb" }, Expects::Lookup));
}

#[test]
fn forgets_come_alone_and_in_batches() {
    expect(2, "0300000000000000", Call::Forget { node: NODE, count: 3 }, Expects::Nothing);
    let batch =
        request(42, "02000000 00000000 0500000000000000 0100000000000000 0600000000000000 0200000000000000");
    let Ok((_, Body::Forgets(forgets))) = decode(&batch, PLAIN) else { panic!("a batch") };
    let forgets: Vec<_> = forgets.collect();
    let forget = |node, count| Call::Forget { node: TreeNodeId(node), count };
    assert_eq!(forgets, [forget(5, 1), forget(6, 2)]);
    let lying = request(42, "ffffffff 00000000 0500000000000000 0100000000000000");
    assert_eq!(decode(&lying, PLAIN), Err(MalformedRequest { call: Some(CallId(17)) }));
}

#[test]
fn requests_that_are_not_calls_are_recognized() {
    let body = |opcode, operands: &str| {
        let request = request(opcode, operands);
        match decode(&request, PLAIN).expect("well formed").1 {
            Body::Interrupt(call) => format!("interrupt {}", call.0),
            Body::Refused(errno) => format!("refused {errno:?}"),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(body(36, "1000000000000000"), "interrupt 16");
    assert_eq!(body(38, ""), "Destroy");
    assert_eq!(body(41, ""), "Ignored");
    assert_eq!(body(39, ""), "refused NotTerminal");
    for unknown in [0, 7, 37, 40, 48, 49, 54, 4096, u32::MAX] {
        assert_eq!(body(unknown, ""), "refused NotImplemented");
    }
}

#[test]
fn a_wrong_length_is_malformed() {
    let mut longer = request(1, "'a' .");
    longer.push(0);
    assert_eq!(decode(&longer, PLAIN), Err(MalformedRequest { call: Some(CallId(17)) }));
    let shorter = longer.get(..41).expect("longer than that");
    assert_eq!(decode(shorter, PLAIN), Err(MalformedRequest { call: Some(CallId(17)) }));
    let headless = longer.get(..39).expect("longer than that");
    assert_eq!(decode(headless, PLAIN), Err(MalformedRequest { call: None }));
}

#[test]
fn extensions_behind_the_operands_are_cut_off() {
    let mut unlink = request(10, "'a' . 0000000000000000");
    unlink[36] = 1;
    let (_, body) = decode(&unlink, PLAIN).expect("well formed");
    assert_eq!(body, Body::Call(Call::Unlink { parent: NODE, name: b"a" }, Expects::Done));
    unlink[36] = 2;
    assert_eq!(decode(&unlink, PLAIN), Err(MalformedRequest { call: Some(CallId(17)) }));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = decode(&bytes, PLAIN);
    }

    /// With a valid header, so that the operands are decoded; each body is read to its end.
    #[test]
    fn random_operands_never_panic(
        opcode in 0_u32..60,
        extension in prop_oneof![9 => Just(0_u8), 1 => any::<u8>()],
        operands in prop::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..200),
        setxattr_ext: bool,
        statx: bool,
    ) {
        let mut request = request(opcode, "");
        request[36] = extension;
        request.extend(&operands);
        let length = u32::try_from(request.len()).expect("short");
        request[..4].copy_from_slice(&length.to_le_bytes());
        if let Ok((header, body)) = decode(&request, Dialect { setxattr_ext, statx, no_opendir: statx }) {
            prop_assert_eq!(header.call, CallId(17));
            if let Body::Forgets(forgets) = body {
                prop_assert!(forgets.count() <= operands.len() / 16);
            }
        }
    }
}
