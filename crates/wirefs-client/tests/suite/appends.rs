//! Two clients append to one file and read it, each with a kernel that keeps pages as it is told.

use crate::alone::{Alone, got, stat};
use crate::config;
use crate::deeds::{READ, READ_WRITE, data, write};
use crate::world::{Delays, World};
use wirefs_cache::CachedRanges;
use wirefs_client::call::{Answer, Call, CallId, Handle, OpenHow, PageCache, ROOT, TreeNodeId};
use wirefs_op::message::get::GotMode;
use wirefs_op::message::put::Rput;
use wirefs_op::message::target::Fd;
use wirefs_op::{Kind, Reply};

const APPEND: OpenHow = OpenHow { append: true, ..READ_WRITE };
const UNSTEADY: Delays = Delays { wire: (1_000, 60_000), server: (0, 30_000), kernel: (0, 0) };

enum Step {
    Writes(CallId),
    Opens(CallId),
    Reads(CallId, Handle),
}

/// One program; `appender` is its open file.
struct Program {
    node: TreeNodeId,
    appender: Handle,
    number: u8,
    step: Step,
    pages: CachedRanges,
}

impl Program {
    /// Its next step, once the last was answered.
    fn go_on(&mut self, world: &mut World, seat: usize) {
        let call = match self.step {
            Step::Writes(call) | Step::Opens(call) | Step::Reads(call, _) => call,
        };
        let Some((_, answer)) = world.seats[seat].answers.remove(&call) else { return };
        let node = self.node;
        self.step = match self.step {
            Step::Writes(_) => Step::Opens(world.call(seat, Call::Open { node, how: READ })),
            Step::Opens(_) => {
                let Answer::Opened(handle, pages) = answer else { panic!("{answer:?}") };
                if pages != PageCache::Keep {
                    self.pages.clear();
                }
                Step::Reads(world.call(seat, Call::Read { node, handle, offset: 0, count: 1 << 20 }), handle)
            }
            Step::Reads(_, handle) => {
                let read = data(answer);
                let own = (seat as u8 + 1, self.number);
                let is_there = read.chunks(2).any(|line| line == [own.0, own.1]);
                assert!(
                    is_there,
                    "seat {seat} does not read its own append {} in {} bytes",
                    own.1,
                    read.len()
                );
                world.call(seat, Call::Release { node, handle, flock_owner: None });
                self.number += 1;
                self.append(world, seat)
            }
        };
    }

    fn append(&self, world: &mut World, seat: usize) -> Step {
        let line = [seat as u8 + 1, self.number];
        Step::Writes(world.call(seat, write(self.node, self.appender, 0, &line)))
    }
}

#[test]
fn reader_of_a_file_that_is_appended_to_reads_past_the_page_cache() {
    let mut world = World::new(1, config("lease"), 1, crate::world::STEADY);
    let node = world.file(0, ROOT, b"log", b"begins");
    let opens = |world: &mut World, how| match world.ask(0, Call::Open { node, how }) {
        Answer::Opened(handle, pages) => (handle, pages),
        other => panic!("{other:?}"),
    };
    let (reader, pages) = opens(&mut world, READ);
    assert_ne!(pages, PageCache::Avoid);
    world.close(0, node, reader);
    let (appender, _) = opens(&mut world, APPEND);
    let (reader, pages) = opens(&mut world, READ);
    assert_eq!(pages, PageCache::Avoid);
    world.close(0, node, reader);
    world.close(0, node, appender);
    assert_ne!(opens(&mut world, READ).1, PageCache::Avoid);
}

#[test]
fn a_read_behind_an_append_that_is_not_answered_asks_the_server() {
    let mut alone = Alone::in_mode("window");
    let look = alone.call(Call::Lookup { parent: ROOT, name: b"f" });
    let tag = alone.next();
    let mode = GotMode::LAST.and(GotMode::DATA);
    alone.reply(tag, &got(mode, Some(stat(9, Kind::File, 5)), b"hello")).unwrap();
    let Some(Answer::Entry(entry)) = alone.answer(look).cloned() else { panic!("no entry") };
    let node = entry.node;
    let open = alone.call(Call::Open { node, how: APPEND });
    let tag = alone.next();
    let stat = Some(stat(9, Kind::File, 5));
    let put = Rput { fd: Fd(3), count: 0, offset: 0, before: 5, stat, dir: None };
    alone.reply(tag, &Reply::Put(put)).unwrap();
    let Some(Answer::Opened(handle, _)) = alone.answer(open).cloned() else { panic!("not opened") };
    let read = Call::Read { node, handle, offset: 0, count: 100 };
    let before = alone.call(read);
    assert_eq!(alone.answer(before), Some(&Answer::Data("hello".into())));
    let written = alone.call(write(node, handle, 0, b" you"));
    assert_eq!(alone.answer(written), Some(&Answer::Count(4)));
    let behind = alone.call(read);
    assert_eq!(alone.answer(behind), None, "what is known does not have it");
}

#[test]
fn program_reads_its_own_appends_after_an_open() {
    for (mode, seed) in ["lease", "window", "commit", "lazy=4k"]
        .into_iter()
        .flat_map(|mode| (0..6).map(move |seed| (mode, seed)))
    {
        let mut world = World::of(seed, &[config(mode); 2], UNSTEADY);
        world.file(0, ROOT, b"log", b"");
        let mut programs: Vec<Program> = (0..2)
            .map(|seat| {
                let node = world.lookup(seat, ROOT, b"log");
                let appender = crate::deeds::handle(world.ask(seat, Call::Open { node, how: APPEND }));
                let step = Step::Writes(CallId(0));
                Program { node, appender, number: 0, step, pages: CachedRanges::default() }
            })
            .collect();
        for (seat, program) in programs.iter_mut().enumerate() {
            program.step = program.append(&mut world, seat);
        }
        while programs.iter().any(|program| program.number < 30) {
            for (seat, program) in programs.iter_mut().enumerate() {
                program.go_on(&mut world, seat);
            }
            world.step();
        }
    }
}
