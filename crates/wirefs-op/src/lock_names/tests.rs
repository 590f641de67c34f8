use super::is_lock_name;

// S-51
#[test]
fn lock_file_names_are_recognized_and_others_are_not() {
    let locks: [&[u8]; 17] = [
        b"index.lock",
        b"c.LOCK",
        b"lock",
        b"lockfile",
        b"LCK..ttyS0",
        b"mbox.lck",
        b".lock-wscript",
        b".#notes.txt",
        b".~lock.table.ods#",
        b"notes.txt~",
        b"sshd.pid",
        b"dpkg_lock",
        b"frontend-lock",
        b"mbox.lock",
        b"SingletonLock",
        b".notes.swp",
        b"~",
    ];
    for name in locks {
        assert!(is_lock_name(name), "{}", String::from_utf8_lossy(name));
    }
    for name in [&b"clock.c"[..], b"block", b"file", b"a.pidgin", b"unlock.rs", b"", b"lo", b"ock"] {
        assert!(!is_lock_name(name), "{}", String::from_utf8_lossy(name));
    }
}
