//! A trace of frames, in words.

use super::World;
use bytes::Bytes;
use wirefs_op::message::put::PutMode;
use wirefs_op::{Reply, Request, Stat};

impl World {
    pub(super) fn note_request(&mut self, seat: usize, request: &Request) {
        let what = match request {
            Request::Get(get) => format!("{:?} of {:?} {:?}", get.mode, get.target.id, get.target.path),
            Request::Put(put) if put.mode.has(PutMode::DATA) => {
                format!("{:?} {} at {}", put.target.id, put.data.0.len(), put.offset)
            }
            other => format!("{other:?}").chars().take(200).collect(),
        };
        self.log.push(format!("{} seat {seat}   sends {} {what}", self.now.0 / 1000, request.name()));
    }

    pub(super) fn note_reply(&mut self, seat: usize, body: Bytes) {
        let Ok((tag, reply)) = Reply::decode(body) else { return };
        let stat = |stat: &Option<Stat>| stat.map(|stat| (stat.id.ino, stat.version, stat.size, stat.leased));
        let what = match &reply {
            Reply::Get(got) => format!("{:?} {:?} {} bytes", got.mode, stat(&got.stat), got.data.0.len()),
            Reply::Put(put) => format!("{} -> {:?}, in {:?}", put.before, stat(&put.stat), stat(&put.dir)),
            other => format!("{other:?}").chars().take(200).collect(),
        };
        self.log.push(format!("{} seat {seat}   hears {tag:?} {what}", self.now.0 / 1000));
    }
}
