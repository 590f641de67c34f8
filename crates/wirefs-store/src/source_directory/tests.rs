use super::*;

#[test]
fn contents_belong_to_one_server() {
    let dir = std::env::temp_dir().join(format!("wirefs-server-{}", std::process::id()));
    let directory = SourceDirectory::open(&dir).unwrap();
    assert!(!directory.is_from_server(b"") && !directory.is_from_server(b"one"), "no server is recorded");
    for identity in [b"one".as_slice(), b"", b"another"] {
        directory.record_server(identity).unwrap();
        let is_from_server = [b"one".as_slice(), b"", b"another"]
            .map(|other| directory.is_from_server(other) == (other == identity));
        assert_eq!(is_from_server, [true; 3]);
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn directory_has_one_mount_until_it_is_released() {
    let dir = std::env::temp_dir().join(format!("wirefs-directory-{}", std::process::id()));
    let directory = SourceDirectory::open(&dir).unwrap();
    assert!(matches!(SourceDirectory::open(&dir), Err(SourceDirectoryError::Busy { .. })));
    directory.release();
    let next = SourceDirectory::open(&dir);
    assert!(matches!(&next, Ok(next) if next.dir() == dir), "{next:?}");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn note_is_readable_while_the_directory_is_in_use() {
    let dir = std::env::temp_dir().join(format!("wirefs-note-{}", std::process::id()));
    let read_note = || match SourceDirectory::open(&dir) {
        Err(SourceDirectoryError::Busy { note, .. }) => note,
        other => panic!("it is in use: {other:?}"),
    };
    let directory = SourceDirectory::open(&dir).unwrap();
    assert_eq!(read_note(), b"");
    directory.write_note(b"a long note").unwrap();
    directory.write_note(b"a note").unwrap();
    assert_eq!(read_note(), b"a note");
    directory.release();
    let _next = SourceDirectory::open(&dir).unwrap();
    assert_eq!(read_note(), b"", "the next mount has written no note");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn lock_file_removed_with_its_directory_is_unused() {
    let dir = std::env::temp_dir().join(format!("wirefs-removed-{}", std::process::id()));
    let directory = SourceDirectory::open(&dir).unwrap();
    let opened = open_lock(&dir).unwrap();
    assert!(is_current_file(&opened, &dir));
    std::fs::remove_file(dir.join(LOCK)).unwrap();
    assert!(!is_current_file(&opened, &dir));
    let _other = open_lock(&dir).unwrap();
    assert!(!is_current_file(&opened, &dir));
    drop(directory);
    std::fs::remove_dir_all(&dir).unwrap();
}
