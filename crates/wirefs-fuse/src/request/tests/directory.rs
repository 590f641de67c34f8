//! Open directories.

use super::*;

#[test]
fn listings_are_decoded_in_both_forms() {
    let (node, handle) = (NODE, HANDLE);
    let operands = "0102030400000000 0700000000000000 00100000 00000000 0000000000000000 00000000 00000000";
    expect(27, "00000000 00000000", Call::Opendir { node }, Expects::OpenedDirectory);
    for (opcode, with_stats, entry_bytes) in [(28, false, 24), (44, true, 152)] {
        let call = Call::Readdir { node, handle, offset: 7, bytes_max: 4096, entry_bytes, with_stats };
        expect(opcode, operands, call, Expects::Listing { bytes_max: 4096, with_stats });
    }
    expect(
        29,
        "0102030400000000 00000000 00000000 0000000000000000",
        Call::Releasedir { node, handle },
        Expects::Done,
    );
}
