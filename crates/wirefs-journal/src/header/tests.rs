use super::*;

/// A header of a segment.
pub(crate) fn header(segment: u64) -> Header {
    Header {
        session: SessionId([7; 16]),
        root: FileId { fs: 0, ino: 2, generation: 9 },
        boot: BootId(0x1122),
        run: 5,
        segment,
        identity: b"SHA256:abc".to_vec(),
        path: b"projects/one".to_vec(),
        source: b"tls://nas/projects/one".to_vec(),
    }
}

#[test]
fn what_is_written_is_read() {
    let header = header(3);
    let bytes = header.encode();
    let (read, end, _) = Header::decode(&bytes).unwrap();
    assert_eq!((read, end), (header, bytes.len()));
}

#[test]
fn cut_or_damaged_header_does_not_count() {
    let bytes = header(3).encode();
    for cut in 0..bytes.len() {
        assert!(Header::decode(&bytes[..cut]).is_err(), "{cut}");
    }
    for at in 0..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[at] ^= 1;
        assert!(Header::decode(&wrong).is_err(), "{at}");
    }
}

#[test]
fn other_files_are_recognized() {
    assert_eq!(Header::decode(&[]), Err(HeaderFault::Blank));
    assert_eq!(Header::decode(&[0; 4096]), Err(HeaderFault::Blank));
    assert_eq!(Header::decode(b"the text of another program"), Err(HeaderFault::Foreign));
    let mut changed_later = header(1).encode();
    changed_later[16] = 4;
    assert_eq!(Header::decode(&changed_later), Err(HeaderFault::Version(4)));
}

#[test]
fn journal_of_the_version_before_is_read() {
    let mut bytes = header(3).encode();
    bytes[16] = 2;
    let end = bytes.len() - 4;
    let sum = u32::from_le_bytes(Crc32c::of(&[&bytes[..end]]));
    bytes[end..].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(Header::decode(&bytes), Ok((header(3), bytes.len(), sum)));
}
