use super::*;

const SOMEBODY: Caller = Caller { uid: 1, gid: 1, pid: 1 };

fn lookup(front: &Front, caller: Caller, name: &[u8]) -> Answer {
    front.answer(caller, &Call::Lookup { parent: ROOT, name })
}

fn names(front: &Front, bytes_max: u32) -> Vec<String> {
    let (mut names, mut offset) = (Vec::new(), 0);
    loop {
        let page = front.list(offset, bytes_max, 24, false);
        let Some(last) = page.last() else { return names };
        offset = last.next;
        names.extend(page.into_iter().map(|listed| String::from_utf8(listed.name).unwrap()));
    }
}

#[test]
fn a_name_is_seen_by_who_mounts_there_first_and_by_all_after_that() {
    let front = Front::new();
    front.make("linus2", Shape::Directory);
    let keeper = Caller { pid: rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned(), ..SOMEBODY };
    assert_eq!(lookup(&front, SOMEBODY, b"linus2"), Answer::NoEntry(Duration::ZERO));
    assert!(matches!(lookup(&front, keeper, b"linus2"), Answer::Entry(_)));
    let again = lookup(&front, SOMEBODY, b"linus2");
    assert!(matches!(again, Answer::Entry(_)), "a name that the kernel knows is never denied");
    assert_eq!(names(&front, 4_096), [".", ".."], "not yet");
    front.show("linus2", true);
    assert_eq!(names(&front, 4_096), [".", "..", "linus2"]);
    front.remove("linus2");
    assert_eq!(lookup(&front, keeper, b"linus2"), Answer::NoEntry(Duration::ZERO));
    assert_eq!(lookup(&front, keeper, b"\xff"), Answer::NoEntry(Duration::ZERO));
}

#[test]
fn a_listing_has_who_is_there_however_small_its_pages_are() {
    let front = Front::new();
    for name in ["linus3", "linus1", "linus2"] {
        front.make(name, Shape::Directory);
        front.show(name, name != "linus2");
    }
    front.make("linus4", Shape::Directory);
    for bytes_max in [40, 64, 4_096] {
        assert_eq!(names(&front, bytes_max), [".", "..", "linus1", "linus3"]);
    }
    assert!(matches!(lookup(&front, SOMEBODY, b"linus2"), Answer::Entry(_)), "a dead one can still be named");
}

#[test]
fn a_link_leads_where_it_was_made_to_and_nothing_can_be_changed() {
    let front = Front::new();
    front.make("linus1", Shape::Link("SELF".to_owned()));
    front.show("linus1", true);
    let Answer::Entry(entry) = lookup(&front, SOMEBODY, b"linus1") else { panic!("it is there") };
    assert_eq!(entry.stat.kind, Kind::Symlink);
    let target = front.answer(SOMEBODY, &Call::Readlink { node: entry.node });
    assert_eq!(target, Answer::Data("SELF".into()));
    let made = front.answer(SOMEBODY, &Call::Mkdir { parent: ROOT, name: b"x", mode: 0o755, umask: 0 });
    assert_eq!(made, Answer::Fail(Errno::ReadOnly));
}

#[test]
fn below_a_name_where_nothing_is_mounted_nobody_is_there() {
    let front = Front::new();
    front.make("linus2", Shape::Directory);
    front.show("linus2", true);
    let Answer::Entry(entry) = lookup(&front, SOMEBODY, b"linus2") else { panic!("it is there") };
    let below = front.answer(SOMEBODY, &Call::Lookup { parent: entry.node, name: b"file" });
    assert_eq!(below, Answer::Fail(Errno::HostDown));
    assert_eq!(front.answer(SOMEBODY, &Call::Opendir { node: entry.node }), Answer::Fail(Errno::HostDown));
}
