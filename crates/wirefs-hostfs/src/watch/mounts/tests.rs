use super::below;

const LIST: &[u8] = b"\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 27 0:31 / /srv/share rw - tmpfs tmpfs rw
31 30 0:32 /sub /srv/share/in rw shared:5 - tmpfs tmpfs rw
32 27 0:33 / /srv/share-beside rw - tmpfs tmpfs rw
33 27 0:34 / /srv/with\\040space/in\\134side rw - tmpfs tmpfs rw
";

fn places(root: &[u8]) -> Vec<String> {
    below(LIST, root).into_iter().map(|line| String::from_utf8(line).unwrap()).collect()
}

#[test]
fn only_mounts_below_count() {
    assert_eq!(places(b"/srv/share"), ["31 30 0:32 /sub /srv/share/in"]);
    assert_eq!(places(b"/srv/with space"), ["33 27 0:34 / /srv/with\\040space/in\\134side"]);
    assert_eq!(places(b"/srv/share/in"), [""; 0]);
    assert_eq!(places(b"/").len(), 4, "all but the root itself");
}

#[test]
fn truncated_lines_are_ignored() {
    assert_eq!(below(b"31 30 0:32\n\n31 30 0:32 / ", b"/"), [[0; 0]; 0]);
}
