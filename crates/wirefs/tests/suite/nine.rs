//! 9P servers as sources.

use crate::home::TestHome;
use std::fs::File;
use std::io::Read;
use wirefs_lab::synthetic::SyntheticServer;

/// One read of a program.
fn read(file: &mut File) -> String {
    let mut buffer = [0; 4096];
    let count = file.read(&mut buffer).unwrap();
    String::from_utf8(buffer[..count].to_vec()).unwrap()
}

/// Looks at the files in each way that is no read, then reads.
fn check(home: &TestHome, server: &SyntheticServer) {
    let before = server.reads();
    let mut names: Vec<_> = std::fs::read_dir(home.path("mnt"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["counter", "never"]);
    assert_eq!(std::fs::metadata(home.path("mnt/counter")).unwrap().len(), 0);
    let mut file = File::open(home.path("mnt/counter")).unwrap();
    assert_eq!(server.reads(), before, "nothing was read ahead");
    for number in 1..=3 {
        assert_eq!(read(&mut file), format!("read {}\n", before + number));
        assert_eq!(server.reads(), before + number);
    }
}

#[test]
fn each_read_of_a_synthetic_file_is_one_read_at_its_server() {
    let home = TestHome::new();
    let server = SyntheticServer::start(&home.path("nine")).unwrap();
    for mode in [&[][..], &["--mode", "strict"], &["--mode", "direct"]] {
        home.wirefs(&[&["mount", &server.source(), "mnt"], mode].concat()).succeeds();
        check(&home, &server);
        home.wirefs(&["umount", "mnt"]).succeeds();
    }
}

#[test]
fn in_modes_that_keep_contents_a_synthetic_file_is_empty_and_never_read() {
    let home = TestHome::new();
    let server = SyntheticServer::start(&home.path("nine")).unwrap();
    for mode in ["lease", "window", "session", "lazy", "commit"] {
        home.wirefs(&["mount", "--mode", mode, &server.source(), "mnt"]).succeeds();
        assert_eq!(home.read("mnt/counter"), "", "{mode}");
        assert_eq!(server.reads(), 0, "{mode}");
        home.wirefs(&["umount", "mnt"]).succeeds();
    }
}

#[test]
fn each_read_of_a_synthetic_file_is_one_read_at_its_server_over_op() {
    let home = TestHome::new();
    let server = SyntheticServer::start(&home.path("nine")).unwrap();
    let export = home.serve_source(&server.source(), &["--listen", &home.url()]);
    home.wirefs(&["mount", "--mode", "strict", &home.url(), "mnt"]).succeeds();
    check(&home, &server);
    home.wirefs(&["umount", "mnt"]).succeeds();
    // In a mode that keeps contents such a file is empty, and still nobody reads it.
    let before = server.reads();
    home.wirefs(&["mount", &home.url(), "mnt"]).succeeds();
    assert_eq!(home.read("mnt/counter"), "");
    assert_eq!(server.reads(), before);
    home.wirefs(&["umount", "mnt"]).succeeds();
    drop(export);
}

#[test]
fn a_server_that_is_not_there_is_named_with_the_next_step() {
    let home = TestHome::new();
    let failed = home.wirefs(&["mount", &format!("9p+unix://{}", home.text("nobody")), "mnt"]);
    assert_ne!(failed.code, Some(0));
    assert!(
        failed.stderr.contains("host is down") && failed.stderr.contains("start the server"),
        "{failed:?}"
    );
}
