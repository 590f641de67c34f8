//! Names: removal, rename, and very long paths.

use crate::harness::{FIRST, World, at, create, path, place};
use wirefs_op::message::put::PutMode;
use wirefs_op::message::remove::Tremove;
use wirefs_op::message::rename::{EXCHANGE, NOREPLACE, Rrename, Trename};
use wirefs_op::message::target::Target;
use wirefs_op::{Errno, Kind, Reply, Request, TreePath};

fn rename(world: &World, from: &str, to: &str, flags: u32) -> Result<Rrename, Errno> {
    let request = Trename { from: place(from), to: place(to), flags };
    match world.ask_one(FIRST, Request::Rename(request))? {
        Reply::Rename(done) => Ok(done),
        reply => panic!("not an answer to Trename: {reply:?}"),
    }
}

// S-49
#[test]
fn renames_replace_refuse_and_exchange_as_requested() {
    let world = World::new();
    std::fs::create_dir(world.host("dir")).unwrap();
    std::fs::write(world.host("one"), "1").unwrap();
    std::fs::write(world.host("dir/two"), "2").unwrap();
    assert_eq!(rename(&world, "one", "dir/two", NOREPLACE), Err(Errno::Exists));
    let exchanged = rename(&world, "one", "dir/two", EXCHANGE).unwrap();
    assert_eq!(std::fs::read(world.host("one")).unwrap(), b"2");
    assert_eq!(exchanged.stat.unwrap(), world.stat(FIRST, at("dir/two")).unwrap());
    assert_eq!(exchanged.from_dir.unwrap(), world.stat(FIRST, at("")).unwrap());
    assert_eq!(exchanged.to_dir.unwrap(), world.stat(FIRST, at("dir")).unwrap());
    rename(&world, "one", "dir/two", 0).unwrap();
    assert_eq!(std::fs::read(world.host("dir/two")).unwrap(), b"2");
    assert_eq!(rename(&world, "one", "two", 0), Err(Errno::NotFound));
    assert_eq!(rename(&world, "dir", "dir/in/itself", 0), Err(Errno::NotFound));
    assert_eq!(rename(&world, "dir", "dir/itself", 0), Err(Errno::Invalid));
    assert_eq!(rename(&world, "dir", "new", 4), Err(Errno::Invalid));
    assert_eq!(rename(&world, "", "new", 0), Err(Errno::Busy));
}

/// A server program publishes by rename too, repeatedly.
#[test]
fn a_rename_returns_the_moved_object_or_none() {
    const ROUNDS: usize = 500;
    let world = World::new();
    std::thread::scope(|scope| {
        let program = scope.spawn(|| {
            for _ in 0..ROUNDS {
                std::fs::write(world.host("other"), "other").unwrap();
                std::fs::rename(world.host("other"), world.host("file")).unwrap();
            }
        });
        while !program.is_finished() {
            std::fs::write(world.host("new"), "new").unwrap();
            let moved = world.stat(FIRST, at("new")).unwrap().id;
            let renamed = rename(&world, "new", "file", 0).unwrap().stat;
            assert!(renamed.is_none_or(|stat| stat.id == moved), "{renamed:?} instead of {moved:?}");
        }
    });
}

#[test]
fn removal_distinguishes_directories_from_files() {
    let world = World::new();
    std::fs::create_dir_all(world.host("full/inner")).unwrap();
    std::fs::write(world.host("file"), "").unwrap();
    let remove = |name: &str, directory| {
        let request = Tremove { place: place(name), directory };
        world.ask_one(FIRST, Request::Remove(request)).map(drop)
    };
    assert_eq!(remove("full", true), Err(Errno::NotEmpty));
    assert_eq!(remove("full", false), Err(Errno::IsDirectory));
    assert_eq!(remove("file", true), Err(Errno::NotDirectory));
    assert_eq!(remove("none", false), Err(Errno::NotFound));
    assert_eq!(remove("", true), Err(Errno::Busy));
    assert_eq!(remove("full/inner", true), Ok(()));
    assert_eq!(remove("full", true), Ok(()));
    assert_eq!(remove("file", false), Ok(()));
}

// S-58
#[test]
fn paths_longer_than_one_system_call_takes_are_walked_in_steps() {
    let world = World::new();
    let name = [b'd'; 200];
    let mut deep = TreePath::root();
    while deep.as_bytes().len() < 10_000 {
        deep = deep.join(&name).unwrap();
        let request = wirefs_op::message::put::Tput {
            target: Target::at(deep.clone()),
            ..create("", Kind::Directory, 0o755, PutMode::NONE)
        };
        world.put(FIRST, request).unwrap();
    }
    let stat = world.stat(FIRST, Target::at(deep.clone())).unwrap();
    assert_eq!(stat.kind, Kind::Directory);
    let below = Target::at(deep.join(b"none").unwrap());
    assert_eq!(world.stat(FIRST, below), Err(Errno::NotFound));
    // Too long for std to remove by path.
    while let Some((dir, _)) = deep.split_last() {
        let request =
            Tremove { place: wirefs_op::message::target::Place { path: deep, dir: None }, directory: true };
        world.ask_one(FIRST, Request::Remove(request)).unwrap();
        deep = dir;
    }
    assert!(path("").is_root());
}
