use crate::message::tests::file_stat;
use crate::stat::{FileId, Stat};
use crate::wire::{Malformed, Reader, Wire, Writer};
use bytes::Bytes;

fn bytes(stat: Stat) -> Vec<u8> {
    let mut writer = Writer::bare();
    stat.put(&mut writer);
    writer.into_bytes()
}

fn taken(bytes: Vec<u8>) -> Result<Stat, Malformed> {
    Stat::take(&mut Reader::new(Bytes::from(bytes)))
}

#[test]
fn the_last_byte_holds_the_flags() {
    for (last, without_xattrs, leased) in
        [(0, false, false), (1, true, false), (2, false, true), (3, true, true)]
    {
        let stat = Stat { without_xattrs, leased, ..file_stat() };
        assert_eq!(bytes(stat).len(), 102);
        assert_eq!(bytes(stat).last(), Some(&last));
        assert_eq!(taken(bytes(stat)), Ok(stat));
        assert_eq!(stat.unleased(), Stat { leased: false, ..stat });
    }
}

#[test]
fn unknown_flags_are_rejected() {
    for last in [4, 8, 0x80, 0xff] {
        let mut bytes = bytes(file_stat());
        *bytes.last_mut().unwrap() = last;
        assert_eq!(taken(bytes).unwrap_err().what, "unknown bits in attributes");
    }
}

#[test]
fn id_on_disk_has_the_bytes_of_an_id_in_a_message() {
    let id = FileId { fs: 0x0403_0201, ino: 0x0c0b_0a09_0807_0605, generation: 0x100f_0e0d };
    let mut writer = Writer::bare();
    id.put(&mut writer);
    assert_eq!((id.to_bytes().to_vec(), writer.into_bytes()), ((1..=16).collect(), (1..=16).collect()));
    assert_eq!(FileId::take_bytes(&mut &id.to_bytes()[..]), Some(id));
    assert_eq!(FileId::take_bytes(&mut &id.to_bytes()[..15]), None);
}
