//! A synthetic 9P2000 server in the manner of Plan 9: files of length 0, whose reads have effects or never end.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use wirefs_ninep::message::Fid;
use wirefs_ninep::plan_stat::{DMDIR, PlanStat, SizedStat};
use wirefs_ninep::qid::{QID_DIRECTORY, Qid};
use wirefs_ninep::text::{Few, NineString};
use wirefs_ninep::{Rmessage, Tmessage};
use wirefs_op::Tag;
use wirefs_op::wire::{Data, Wire, Writer};

/// The files by their qid's path: the root, one whose reads count, and one whose reads are never answered.
const NAMES: [&[u8]; 3] = [b"/", b"counter", b"never"];
const ROOT: u64 = 0;
const COUNTER: u64 = 1;

/// The running server. Its threads end with the process.
#[derive(Debug)]
pub struct SyntheticServer {
    socket: PathBuf,
    reads: Arc<AtomicU32>,
    flushed: mpsc::Receiver<u16>,
}

impl SyntheticServer {
    /// Listens on a socket, which must not be there.
    ///
    /// # Errors
    /// The socket cannot be bound.
    pub fn start(socket: &Path) -> io::Result<SyntheticServer> {
        let listener = UnixListener::bind(socket)?;
        let (reads, (flushes, flushed)) = (Arc::new(AtomicU32::new(0)), mpsc::channel());
        let counter = Arc::clone(&reads);
        thread::Builder::new().name("synthetic".into()).spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                // The end of a connection, or a client that breaks the protocol.
                let _end = Conversation { stream, fids: BTreeMap::new() }.serve(&counter, &flushes);
            }
        })?;
        Ok(SyntheticServer { socket: socket.to_path_buf(), reads, flushed })
    }

    /// Returns the source that names it.
    pub fn source(&self) -> String {
        format!("9p+unix://{}", self.socket.display())
    }

    /// Returns how often `counter` was read.
    pub fn reads(&self) -> u32 {
        self.reads.load(Ordering::SeqCst)
    }

    /// Waits for a Tflush.
    pub fn await_flush(&self) {
        // Its thread lives as long as the process.
        let _flushed = self.flushed.recv();
    }
}

fn qid(path: u64) -> Qid {
    Qid { kind: if path == ROOT { QID_DIRECTORY } else { 0 }, version: 0, path }
}

fn stat(path: u64) -> PlanStat {
    let user = NineString::new(b"glenda");
    let name = usize::try_from(path).ok().and_then(|path| NAMES.get(path)).copied().unwrap_or_default();
    PlanStat {
        kind: 0,
        dev: 0,
        qid: qid(path),
        mode: if path == ROOT { DMDIR | 0o755 } else { 0o644 },
        atime: 1,
        mtime: 1,
        length: 0,
        name: NineString::new(name),
        uid: user.clone(),
        gid: user.clone(),
        muid: user,
    }
}

fn error(text: &str) -> Rmessage {
    Rmessage::Error { text: NineString::new(text.as_bytes()) }
}

struct Conversation {
    stream: UnixStream,
    fids: BTreeMap<Fid, u64>,
}

impl Conversation {
    fn serve(mut self, reads: &AtomicU32, flushes: &mpsc::Sender<u16>) -> io::Result<()> {
        loop {
            let mut size = [0; 4];
            self.stream.read_exact(&mut size)?;
            let mut body = vec![0; (u32::from_le_bytes(size) as usize).saturating_sub(4)];
            self.stream.read_exact(&mut body)?;
            let (tag, request) = Tmessage::decode(Bytes::from(body)).map_err(io::Error::other)?;
            if let Some(reply) = self.answer(request, reads, flushes) {
                self.send(tag, &reply)?;
            }
        }
    }

    fn send(&mut self, tag: Tag, reply: &Rmessage) -> io::Result<()> {
        let frame = reply.encode(tag);
        self.stream.write_all(&[&frame.head[..], &frame.data].concat())
    }

    fn path(&self, fid: Fid) -> u64 {
        self.fids.get(&fid).copied().unwrap_or(ROOT)
    }

    fn answer(
        &mut self,
        request: Tmessage,
        reads: &AtomicU32,
        flushes: &mpsc::Sender<u16>,
    ) -> Option<Rmessage> {
        Some(match request {
            Tmessage::Version { msize, .. } => {
                Rmessage::Version { msize, version: NineString::new(b"9P2000") }
            }
            Tmessage::Attach { fid, .. } => {
                self.fids.insert(fid, ROOT);
                Rmessage::Attach { qid: qid(ROOT) }
            }
            Tmessage::Walk { fid, newfid, names } => self.walk(fid, newfid, &names.0),
            Tmessage::Open { fid, .. } => Rmessage::Open { qid: qid(self.path(fid)), iounit: 0 },
            Tmessage::Stat { fid } => Rmessage::Stat { stat: SizedStat(stat(self.path(fid))) },
            Tmessage::Read { fid, offset, count } => match self.path(fid) {
                ROOT => Rmessage::Read { data: listing(offset, count) },
                COUNTER => {
                    let number = reads.fetch_add(1, Ordering::SeqCst) + 1;
                    Rmessage::Read { data: Data(Bytes::from(format!("read {number}\n"))) }
                }
                _ => return None,
            },
            Tmessage::Flush { old } => {
                // Nobody may ask for it.
                let _unheard = flushes.send(old);
                Rmessage::Flush {}
            }
            Tmessage::Clunk { fid } => {
                self.fids.remove(&fid);
                Rmessage::Clunk {}
            }
            _ => error("not supported"),
        })
    }

    fn walk(&mut self, fid: Fid, newfid: Fid, names: &[NineString]) -> Rmessage {
        let known = |name: &NineString| (1..).zip(&NAMES[1..]).find(|(_, known)| name.0 == **known);
        let found = match names {
            [] => Some((self.path(fid), Vec::new())),
            [name] => known(name).map(|(path, _)| (path, vec![qid(path)])),
            _ => None,
        };
        match found {
            Some((path, qids)) => {
                self.fids.insert(newfid, path);
                Rmessage::Walk { qids: Few(qids) }
            }
            None => error("file does not exist"),
        }
    }
}

/// A part of the root's listing.
fn listing(offset: u64, count: u32) -> Data {
    let mut writer = Writer::bare();
    (1..NAMES.len() as u64).for_each(|path| stat(path).put(&mut writer));
    let all = Bytes::from(writer.into_bytes());
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(all.len());
    Data(all.slice(start..all.len().min(start + count as usize)))
}
