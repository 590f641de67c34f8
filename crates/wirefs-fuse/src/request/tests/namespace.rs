//! Names: creation, links, rename, removal.

use super::*;

#[test]
fn names_are_created() {
    let parent = NODE;
    expect(
        8,
        "a4810000 01050000 12000000 00000000 'n' .",
        Call::Mknod { parent, name: b"n", mode: 0o100_644, umask: 0o022, rdev: 0x501 },
        Expects::Entry,
    );
    expect(
        9,
        "ed010000 12000000 'dir' .",
        Call::Mkdir { parent, name: b"dir", mode: 0o755, umask: 0o022 },
        Expects::Entry,
    );
    expect(
        6,
        "'link' . '../to' .",
        Call::Symlink { parent, name: b"link", target: b"../to" },
        Expects::Entry,
    );
}

#[test]
fn names_are_renamed_and_removed() {
    let parent = NODE;
    expect(10, "'gone' .", Call::Unlink { parent, name: b"gone" }, Expects::Done);
    expect(11, "'gone' .", Call::Rmdir { parent, name: b"gone" }, Expects::Done);
    let to_parent = TreeNodeId(0x33);
    let rename = |flags| Call::Rename { parent, name: b"a", to_parent, to_name: b"bc", flags };
    expect(12, "3300000000000000 'a' . 'bc' .", rename(0), Expects::Done);
    expect(45, "3300000000000000 02000000 00000000 'a' . 'bc' .", rename(2), Expects::Done);
}

#[test]
fn hard_links_and_symlinks_are_decoded() {
    let parent = NODE;
    expect(
        13,
        "4400000000000000 'hard' .",
        Call::Link { node: TreeNodeId(0x44), parent, name: b"hard" },
        Expects::Entry,
    );
    expect(5, "", Call::Readlink { node: NODE }, Expects::Data { bytes_max: 4095 });
}
