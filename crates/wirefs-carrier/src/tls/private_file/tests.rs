use super::*;

fn mode_of(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

// S-188
#[test]
fn key_file_that_others_could_read_change_or_replace_is_refused() {
    let directory = std::env::temp_dir().join(format!("wirefs-carrier-secret-{}", std::process::id()));
    make_directory(&directory).unwrap();
    let path = directory.join("key");
    // A secret may have any bytes.
    fs::write(&path, [0xff, 0, 1]).unwrap();
    for (of_directory, of_file, is_good) in [
        (0o700, 0o600, true),
        (0o755, 0o400, true),
        (0o1777, 0o600, true),
        (0o700, 0o640, false),
        (0o700, 0o602, false),
        (0o770, 0o600, false),
        (0o707, 0o600, false),
    ] {
        mode_of(&directory, of_directory);
        mode_of(&path, of_file);
        let read = read_secret(&path);
        assert_eq!(read.is_ok(), is_good, "{of_directory:o} {of_file:o}: {read:?}");
        if let Err(error) = read {
            assert!(error.to_string().contains("chmod"), "{error}");
        }
    }
    fs::remove_dir_all(&directory).unwrap();
}
