//! Splits frames into TLS records.

use std::collections::VecDeque;

use wirefs_op::Frame;

use super::cipher::{Outgoing, RECORD_BYTES_MAX};

/// The size of one encryption batch, in bytes. Limits how long the reader waits for the session, and how long an urgent
/// frame waits for encrypted bulk. One frame is never split between two batches.
const BATCH_BYTES: usize = 128 * 1024;

/// Encrypts one record, or a close_notify alert if there is none.
pub(super) type SealRecord<'a> = dyn FnMut(Option<&[u8]>, &mut Outgoing) -> Result<(), rustls::Error> + 'a;

/// Data to encrypt.
pub(super) trait Plaintext {
    fn seal(&mut self, seal: &mut SealRecord<'_>, outgoing: &mut Outgoing) -> Result<(), rustls::Error>;
}

/// The close_notify alert that ends our direction.
pub(super) struct CloseNotify;

impl Plaintext for CloseNotify {
    fn seal(&mut self, seal: &mut SealRecord<'_>, outgoing: &mut Outgoing) -> Result<(), rustls::Error> {
        seal(None, outgoing)
    }
}

/// Bytes beside the frames.
pub(super) struct Raw<'a>(pub(super) &'a [u8]);

impl Plaintext for Raw<'_> {
    fn seal(&mut self, seal: &mut SealRecord<'_>, outgoing: &mut Outgoing) -> Result<(), rustls::Error> {
        seal(Some(self.0), outgoing)
    }
}

/// Frames, popped as they are taken. Small parts share a record; whole records of data are encrypted without a copy.
pub(super) struct Frames<'a> {
    pub(super) queue: &'a mut VecDeque<Frame>,
    /// The record being filled; empty between batches.
    pub(super) record: &'a mut Vec<u8>,
}

impl Plaintext for Frames<'_> {
    fn seal(&mut self, seal: &mut SealRecord<'_>, outgoing: &mut Outgoing) -> Result<(), rustls::Error> {
        while outgoing.len() < BATCH_BYTES {
            let Some(frame) = self.queue.pop_front() else { break };
            for mut part in [frame.head.as_slice(), &frame.data] {
                while !part.is_empty() {
                    let room = RECORD_BYTES_MAX - self.record.len();
                    let (now, later) = part.split_at_checked(room).unwrap_or((part, &[]));
                    part = later;
                    if now.len() == RECORD_BYTES_MAX {
                        seal(Some(now), outgoing)?;
                        continue;
                    }
                    self.record.extend_from_slice(now);
                    if self.record.len() == RECORD_BYTES_MAX {
                        seal(Some(self.record), outgoing)?;
                        self.record.clear();
                    }
                }
            }
        }
        if !self.record.is_empty() {
            seal(Some(self.record), outgoing)?;
            self.record.clear();
        }
        Ok(())
    }
}
