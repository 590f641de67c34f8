use super::*;

const ANY_CALLER: Caller = Caller { uid: 1, gid: 1, pid: 1 };

fn lookup(root: &NetRoot, caller: Caller, name: &[u8]) -> Answer {
    root.answer(caller, &Call::Lookup { parent: ROOT, name })
}

fn names(root: &NetRoot, bytes_max: u32) -> Vec<String> {
    let (mut names, mut offset) = (Vec::new(), 0);
    loop {
        let page = root.list(offset, bytes_max, 24, false);
        let Some(last) = page.last() else { return names };
        offset = last.next;
        names.extend(page.into_iter().map(|listed| String::from_utf8(listed.name).unwrap()));
    }
}

#[test]
fn name_is_visible_to_the_mounting_thread_first_and_then_to_all() {
    let root = NetRoot::new();
    root.make("linus2", EntryKind::Directory);
    let updater =
        Caller { pid: rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned(), ..ANY_CALLER };
    assert_eq!(lookup(&root, ANY_CALLER, b"linus2"), Answer::NoEntry(Duration::ZERO));
    assert!(matches!(lookup(&root, updater, b"linus2"), Answer::Entry(_)));
    let again = lookup(&root, ANY_CALLER, b"linus2");
    assert!(matches!(again, Answer::Entry(_)), "a name that the kernel has cached stays visible");
    assert_eq!(names(&root, 4_096), [".", ".."], "not yet");
    root.show("linus2", true);
    assert_eq!(names(&root, 4_096), [".", "..", "linus2"]);
    root.remove("linus2");
    assert_eq!(lookup(&root, updater, b"linus2"), Answer::NoEntry(Duration::ZERO));
    assert_eq!(lookup(&root, updater, b"\xff"), Answer::NoEntry(Duration::ZERO));
}

#[test]
fn listing_is_complete_with_small_pages() {
    let root = NetRoot::new();
    for name in ["linus3", "linus1", "linus2"] {
        root.make(name, EntryKind::Directory);
        root.show(name, name != "linus2");
    }
    root.make("linus4", EntryKind::Directory);
    for bytes_max in [40, 64, 4_096] {
        assert_eq!(names(&root, bytes_max), [".", "..", "linus1", "linus3"]);
    }
    assert!(
        matches!(lookup(&root, ANY_CALLER, b"linus2"), Answer::Entry(_)),
        "a dead node can still be looked up"
    );
}

#[test]
fn link_has_its_target_and_the_root_is_read_only() {
    let root = NetRoot::new();
    root.make("linus1", EntryKind::Link("SELF".to_owned()));
    root.show("linus1", true);
    let Answer::Entry(entry) = lookup(&root, ANY_CALLER, b"linus1") else { panic!("it is there") };
    assert_eq!(entry.stat.kind, Kind::Symlink);
    let target = root.answer(ANY_CALLER, &Call::Readlink { node: entry.node });
    assert_eq!(target, Answer::Data("SELF".into()));
    let made = root.answer(ANY_CALLER, &Call::Mkdir { parent: ROOT, name: b"x", mode: 0o755, umask: 0 });
    assert_eq!(made, Answer::Fail(Errno::ReadOnly));
}

#[test]
fn directory_without_a_mount_reports_host_down() {
    let root = NetRoot::new();
    root.make("linus2", EntryKind::Directory);
    root.show("linus2", true);
    let Answer::Entry(entry) = lookup(&root, ANY_CALLER, b"linus2") else { panic!("it is there") };
    let below = root.answer(ANY_CALLER, &Call::Lookup { parent: entry.node, name: b"file" });
    assert_eq!(below, Answer::Fail(Errno::HostDown));
    assert_eq!(root.answer(ANY_CALLER, &Call::Opendir { node: entry.node }), Answer::Fail(Errno::HostDown));
}
