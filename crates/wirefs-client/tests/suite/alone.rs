//! A client without a server: the test plays it.

use crate::config;
use crate::deeds::READ;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, CallId, Caller, Handle, Invalidate, ROOT, TreeNodeId};
use wirefs_client::{Attachment, Client, Config, DataKey, Lane, Note, Output};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::listing::ListingWriter;
use wirefs_op::message::attach::{Leases, Watch};
use wirefs_op::message::get::{GotMode, Rget};
use wirefs_op::message::recall::{RecallItem, Rrecall};
use wirefs_op::message::statfs::Rstatfs;
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::message::version::BootId;
use wirefs_op::wire::{Data, Malformed};
use wirefs_op::{DirEntry, FileId, FsStat, Kind, NOTAG, Reply, Request, Stat, Tag, Time, Timestamp};

const LEASES: Leases = Leases { term_ms: 15_000, kept: false, watch: Watch::None };

/// It, and what it did.
pub(crate) struct Alone {
    pub(crate) client: Client,
    pub(crate) now: Time,
    calls: u64,
    pub(crate) asked: VecDeque<(Tag, Request)>,
    answers: Vec<(CallId, Answer)>,
    /// Requests over data connections.
    pub(crate) over: BTreeMap<Tag, DataKey>,
    /// Data connections that were wanted, and that are wanted no more.
    pub(crate) opens: Vec<DataKey>,
    pub(crate) closes: Vec<DataKey>,
    /// How often the connection was given up.
    pub(crate) hang_ups: usize,
    /// The fault that the server blamed on it, in the server's words.
    pub(crate) blames: Vec<String>,
    /// Invalidations, and the outputs that wait for them, in order.
    pub(crate) kernel_steps: Vec<KernelStep>,
    /// Notes for the journal, each with how many requests were asked and not taken out before.
    pub(crate) notes: Vec<(Note, usize)>,
}

/// A step that follows the earlier invalidations of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KernelStep {
    Forget(Invalidate),
    /// Trecalled with this serial.
    Recalled(u64),
}

pub(crate) fn stat(ino: u64, kind: Kind, size: u64) -> Stat {
    let at = Timestamp { secs: 1, nanos: 0 };
    Stat {
        version: 5,
        mode: 0o644,
        nlink: 1,
        size,
        blksize: 4096,
        atime: at,
        mtime: at,
        ctime: at,
        without_xattrs: true,
        ..Stat::blank(FileId { fs: 0, ino, generation: 1 }, kind)
    }
}

pub(crate) fn got(mode: GotMode, stat: Option<Stat>, data: &[u8]) -> Reply {
    Reply::Get(Rget { fd: NOFD, mode, stat, data: Data(Bytes::copy_from_slice(data)) })
}

pub(crate) fn listing(names: &[&[u8]], ino: u64) -> Bytes {
    let mut writer = ListingWriter::new(DATA_BYTES_MAX);
    for (index, name) in names.iter().enumerate() {
        let stat = stat(ino + index as u64, Kind::File, 3);
        assert!(writer.push(&DirEntry { name: name.to_vec(), next: index as u64 + 1, stat }));
    }
    writer.finish()
}

fn attachment(boot: u64, leases: Option<Leases>) -> Attachment {
    Attachment {
        root: stat(1, Kind::Directory, 0),
        uid: 0,
        gid: 0,
        acts_for_callers: true,
        read_only: false,
        boot: BootId(boot),
        ledger: None,
        has_barriers: false,
        data_connections: 3,
        leases,
    }
}

impl Alone {
    pub(crate) fn new() -> Alone {
        Alone::with("window", None)
    }

    /// In mode `lease`, at a server that leases.
    pub(crate) fn leased() -> Alone {
        let mut alone = Alone::with("lease", Some(LEASES));
        // Leases count once something was answered.
        alone.call(Call::Statfs { node: ROOT });
        let tag = alone.next();
        alone.reply(tag, &Reply::Statfs(Rstatfs { figures: FsStat::default() })).unwrap();
        alone
    }

    pub(crate) fn in_mode(mode: &str) -> Alone {
        Alone::with(mode, None)
    }

    /// There is a server again, which counts changes and has come so far.
    pub(crate) fn connected_to_ledger(&mut self, boot: u64, ledger: u64) {
        self.connected_to_session(boot, ledger, false);
    }

    /// The same, where the server may say that it has the session still.
    pub(crate) fn connected_to_session(&mut self, boot: u64, ledger: u64, resumed: bool) {
        let attachment = Attachment { ledger: Some(ledger), ..attachment(boot, None) };
        self.client.connected(self.now, attachment, resumed);
        self.outputs();
    }

    /// The same, of a server that grants leases and may grant exclusivity.
    pub(crate) fn connected_with_leases(&mut self, boot: u64, ledger: u64) {
        let attachment = Attachment { ledger: Some(ledger), ..attachment(boot, Some(LEASES)) };
        self.client.connected(self.now, attachment, true);
        self.outputs();
    }

    /// With a journal, at a server that grants leases.
    pub(crate) fn journaled() -> Alone {
        Alone::of(Config { journal: true, ..config("lease") }, Some(LEASES))
    }

    fn with(mode: &str, leases: Option<Leases>) -> Alone {
        Alone::of(config(mode), leases)
    }

    fn of(config: Config, leases: Option<Leases>) -> Alone {
        let attachment = attachment(1, leases);
        let now = Time(1_000_000_000);
        let client = Client::new(config, attachment, now);
        Alone {
            client,
            now,
            calls: 0,
            asked: VecDeque::new(),
            answers: Vec::new(),
            over: BTreeMap::new(),
            opens: Vec::new(),
            closes: Vec::new(),
            hang_ups: 0,
            blames: Vec::new(),
            kernel_steps: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn outputs(&mut self) {
        while let Some(output) = self.client.poll() {
            match output {
                Output::Answer(call, answer)
                | Output::AnswerAfter(call, answer)
                | Output::AnswerDropped(_, call, answer)
                | Output::AnswerJournaled(call, answer) => {
                    assert!(self.answers.iter().all(|(other, _)| *other != call), "answered twice");
                    self.answers.push((call, answer));
                }
                Output::Send(frame, lane) => {
                    let (tag, request) = Request::decode(frame.to_body()).unwrap();
                    self.over.remove(&tag);
                    if let Lane::Data(key) = lane {
                        self.over.insert(tag, key);
                    }
                    self.asked.push_back((tag, request));
                }
                Output::SendAfter(frame) => match Request::decode(frame.to_body()).unwrap() {
                    (NOTAG, Request::Recalled(recalled)) => {
                        self.kernel_steps.push(KernelStep::Recalled(recalled.serial))
                    }
                    other => panic!("{other:?}"),
                },
                Output::Invalidate(what) => self.kernel_steps.push(KernelStep::Forget(what)),
                Output::OpenData(key) => self.opens.push(key),
                Output::CloseData(key) | Output::HangUpData(key) => self.closes.push(key),
                Output::LetGo(..)
                | Output::AwaitReaders(..)
                | Output::Journal(..)
                | Output::JournalForget(_)
                | Output::JournalAnew(_)
                | Output::Refused(..) => {}
                Output::JournalNote(note) => self.notes.push((note, self.asked.len())),
                Output::Load(_) | Output::Keep(..) => panic!("there is no store"),
                Output::HangUp => self.hang_ups += 1,
                Output::Blamed(why) => self.blames.push(why),
                Output::RefusedLink(..) => panic!("links are not confined"),
            }
        }
    }

    pub(crate) fn call(&mut self, call: Call<'_>) -> CallId {
        self.calls += 1;
        let id = CallId(self.calls);
        self.client.call(self.now, id, Caller::default(), call);
        self.outputs();
        id
    }

    pub(crate) fn reply(&mut self, tag: Tag, reply: &Reply) -> Result<(), Malformed> {
        self.now.0 += 1_000_000;
        let received = self.client.receive(self.now, reply.encode(tag).to_body());
        self.outputs();
        received
    }

    /// The same over a data connection.
    pub(crate) fn reply_over(&mut self, key: DataKey, tag: Tag, reply: &Reply) -> Result<(), Malformed> {
        self.now.0 += 1_000_000;
        let received = self.client.receive_data(self.now, key, reply.encode(tag).to_body());
        self.outputs();
        received
    }

    /// The server recalls this; returns the invalidations of the kernel and the acknowledgment.
    pub(crate) fn recall(&mut self, serial: u64, items: Vec<RecallItem>) -> Vec<KernelStep> {
        self.kernel_steps.clear();
        self.reply(NOTAG, &Reply::Recall(Rrecall { serial, items })).unwrap();
        std::mem::take(&mut self.kernel_steps)
    }

    /// Lets so much time pass, as the ticker does.
    pub(crate) fn tick(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            let due =
                self.client.deadline().map_or(until, |due| due.max(self.now + Duration::from_millis(1)));
            self.sleep(due.min(until).since(self.now));
        }
    }

    /// The machine sleeps for so long.
    pub(crate) fn sleep(&mut self, span: Duration) {
        self.now = self.now + span;
        self.client.tick(self.now);
        self.outputs();
    }

    /// The caller of a call got a signal that asks it to end.
    pub(crate) fn asked_to_end(&mut self, id: CallId) {
        self.client.asked_to_end(self.now, id);
        self.outputs();
    }

    pub(crate) fn lost(&mut self) {
        self.client.lost(self.now);
        self.outputs();
    }

    /// There is a server again, which knows nothing of the session.
    pub(crate) fn connected_to(&mut self, boot: u64) {
        self.client.connected(self.now, attachment(boot, None), false);
        self.outputs();
    }

    /// There is a server again, of an edition that knows no data connections.
    pub(crate) fn connected_without_data(&mut self) {
        let attachment = Attachment { data_connections: 0, ..attachment(1, None) };
        self.client.connected(self.now, attachment, false);
        self.outputs();
    }

    pub(crate) fn next(&mut self) -> Tag {
        self.asked.pop_front().expect("nothing was asked").0
    }

    pub(crate) fn answer(&self, call: CallId) -> Option<&Answer> {
        self.answers.iter().find(|(other, _)| *other == call).map(|(_, answer)| answer)
    }

    /// A file of this size that nothing but its attributes is known of, opened.
    pub(crate) fn open(&mut self, size: u64) -> (TreeNodeId, Handle) {
        let call = self.call(Call::Lookup { parent: ROOT, name: b"f" });
        let tag = self.next();
        let mode = GotMode::LAST.and(GotMode::MORE);
        self.reply(tag, &got(mode, Some(stat(9, Kind::File, size)), b"")).unwrap();
        let Some(Answer::Entry(entry)) = self.answer(call) else { panic!("{:?}", self.answers) };
        let node = entry.node;
        let call = self.call(Call::Open { node, how: READ });
        let mut reply = got(mode, Some(stat(9, Kind::File, size)), b"");
        if let Reply::Get(got) = &mut reply {
            got.fd = Fd(3);
        }
        // An empty file is known whole. What is asked for behind the opening brings nothing.
        while let Some((tag, _)) = self.asked.pop_front() {
            self.reply(tag, &reply).unwrap();
            reply = got(mode, Some(stat(9, Kind::File, size)), b"");
        }
        let Some(Answer::Opened(handle, _)) = self.answer(call) else { panic!("{:?}", self.answers) };
        (node, *handle)
    }
}
