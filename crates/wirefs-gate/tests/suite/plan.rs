//! 9P2000: each operation that it has of its own.

use crate::client::{Client, ROOT, text};
use crate::gate::{Gate, Place};
use wirefs_ninep::plan_stat::{DMDIR, PlanStat, SizedStat};
use wirefs_ninep::text::NineString;
use wirefs_ninep::{Rmessage, Tmessage};
use wirefs_op::wire::{Reader, Wire};

fn stat_of(client: &mut Client, path: &str) -> PlanStat {
    let fid = client.walk(path);
    match client.does(Tmessage::Stat { fid }) {
        Rmessage::Stat { stat } => stat.0,
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_and_directories_are_created_read_and_removed() {
    let place = Place::new();
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::plan(&gate);
    let dir = client.walk("");
    client.does(Tmessage::Create { fid: dir, name: text("d"), perm: DMDIR | 0o777, mode: 0 });
    client.clunk(dir);
    let fid = client.walk("d");
    client.does(Tmessage::Create { fid, name: text("f"), perm: 0o666, mode: 2 });
    client.write(fid, 0, b"hello");
    assert_eq!(client.read(fid, 1, 3), b"ell");
    client.clunk(fid);
    assert_eq!(std::fs::read(place.tree("d/f")).unwrap(), b"hello");
    let stat = stat_of(&mut client, "d/f");
    assert_eq!((stat.length, stat.name, stat.mode & DMDIR), (5, text("f"), 0));
    assert_eq!(stat_of(&mut client, "d").mode & DMDIR, DMDIR);
    assert_eq!(stat_of(&mut client, "").name, text("/"));
    let again = client.walk("d");
    let taken = client.ask(Tmessage::Create { fid: again, name: text("f"), perm: 0o666, mode: 2 });
    assert_eq!(taken, Rmessage::Error { text: text("file exists") });
    for path in ["d/f", "d"] {
        let fid = client.walk(path);
        client.does(Tmessage::Remove { fid });
    }
    assert!(!place.tree("d").exists());
    let root = client.ask(Tmessage::Remove { fid: ROOT });
    assert_eq!(root, Rmessage::Error { text: text("device or resource busy") });
}

#[test]
fn a_directory_is_read_as_stats_on_from_where_the_last_read_ended() {
    let place = Place::new();
    let mut wanted: Vec<String> = (0..60).map(|number| format!("file-{number:03}")).collect();
    wanted.iter().for_each(|name| std::fs::write(place.tree(name), "12345").unwrap());
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::plan(&gate);
    let fid = client.walk("");
    client.does(Tmessage::Open { fid, mode: 0 });
    for _again in 0..2 {
        let (mut names, mut offset) = (Vec::new(), 0);
        loop {
            let bytes = client.read(fid, offset, 300);
            offset += bytes.len() as u64;
            let mut reader = Reader::new(bytes.into());
            if reader.remaining() == 0 {
                break;
            }
            while reader.remaining() > 0 {
                let stat = PlanStat::take(&mut reader).unwrap();
                assert_eq!(stat.length, 5);
                names.push(String::from_utf8(stat.name.0.to_vec()).unwrap());
            }
        }
        names.sort();
        wanted.sort();
        assert_eq!(names, wanted);
    }
    let elsewhere = client.ask(Tmessage::Read { fid, offset: 7, count: 300 });
    assert_eq!(elsewhere, Rmessage::Error { text: text("invalid argument") });
}

#[test]
fn wstat_changes_what_it_names_and_nothing_else() {
    let place = Place::new();
    std::fs::write(place.tree("f"), "contents").unwrap();
    std::fs::write(place.tree("taken"), "").unwrap();
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::plan(&gate);
    let fid = client.walk("f");
    let before = stat_of(&mut client, "f");
    client.does(Tmessage::Wstat { fid, stat: SizedStat(PlanStat::unchanged()) });
    assert_eq!(stat_of(&mut client, "f"), before);
    let change = PlanStat { length: 3, mode: 0o600, mtime: 77, name: text("g"), ..PlanStat::unchanged() };
    client.does(Tmessage::Wstat { fid, stat: SizedStat(change) });
    assert_eq!(std::fs::read(place.tree("g")).unwrap(), b"con");
    let after = stat_of(&mut client, "g");
    assert_eq!((after.mode, after.mtime, after.qid.path), (0o600, 77, before.qid.path));
    let onto = PlanStat { name: text("taken"), ..PlanStat::unchanged() };
    let taken = client.ask(Tmessage::Wstat { fid, stat: SizedStat(onto) });
    assert_eq!(taken, Rmessage::Error { text: text("file exists") });
    let directory = PlanStat { mode: DMDIR | 0o700, ..PlanStat::unchanged() };
    assert!(matches!(
        client.ask(Tmessage::Wstat { fid, stat: SizedStat(directory) }),
        Rmessage::Error { .. }
    ));
}

#[test]
fn a_file_opened_to_be_removed_is_gone_with_its_fid() {
    let place = Place::new();
    std::fs::write(place.tree("f"), "contents").unwrap();
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::plan(&gate);
    let fid = client.walk("f");
    client.does(Tmessage::Open { fid, mode: 0x40 });
    assert_eq!(client.read(fid, 0, 3), b"con");
    client.clunk(fid);
    assert!(!place.tree("f").exists());
}

#[test]
fn authentication_is_not_needed_and_unknown_versions_are_not_spoken() {
    let place = Place::new();
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::plan(&gate);
    let auth = Tmessage::Auth {
        afid: client.new_fid(),
        uname: text("u"),
        aname: NineString::default(),
        uid: wirefs_ninep::text::Tail(None),
    };
    assert!(matches!(client.ask(auth), Rmessage::Error { .. }));
    for (asked, agreed) in [("9P2000.u", "9P2000"), ("9P3000", "unknown"), ("9P2000.L", "9P2000.L")] {
        let reply = client.ask(Tmessage::Version { msize: 1 << 30, version: text(asked) });
        assert_eq!(
            reply,
            Rmessage::Version { msize: wirefs_ninep::limits::MSIZE_MAX, version: text(agreed) }
        );
    }
}
