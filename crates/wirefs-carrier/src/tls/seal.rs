//! Cuts frames into TLS records.

use std::collections::VecDeque;

use wirefs_op::Frame;

use super::cipher::{Outgoing, RECORD_BYTES_MAX};

/// Ciphertext made at one go, in bytes: bounds how long the reader waits for the session, and how long an urgent frame
/// waits behind bulk that is already encrypted. One frame is never split between two goes.
const BATCH_BYTES: usize = 128 * 1024;

/// Encrypts one record, or the farewell when there is none.
pub(super) type SealRecord<'a> = dyn FnMut(Option<&[u8]>, &mut Outgoing) -> Result<(), rustls::Error> + 'a;

/// Something to encrypt.
pub(super) trait Plaintext {
    fn seal(&mut self, seal: &mut SealRecord<'_>, outgoing: &mut Outgoing) -> Result<(), rustls::Error>;
}

/// The end of what we send.
pub(super) struct Farewell;

impl Plaintext for Farewell {
    fn seal(&mut self, seal: &mut SealRecord<'_>, outgoing: &mut Outgoing) -> Result<(), rustls::Error> {
        seal(None, outgoing)
    }
}

/// A few bytes beside the frames.
pub(super) struct Raw<'a>(pub(super) &'a [u8]);

impl Plaintext for Raw<'_> {
    fn seal(&mut self, seal: &mut SealRecord<'_>, outgoing: &mut Outgoing) -> Result<(), rustls::Error> {
        seal(Some(self.0), outgoing)
    }
}

/// Frames, popped as they are taken. Small parts share a record; whole records of data are encrypted where they lie.
pub(super) struct Frames<'a> {
    pub(super) queue: &'a mut VecDeque<Frame>,
    /// The record being filled; empty between goes.
    pub(super) stage: &'a mut Vec<u8>,
}

impl Plaintext for Frames<'_> {
    fn seal(&mut self, seal: &mut SealRecord<'_>, outgoing: &mut Outgoing) -> Result<(), rustls::Error> {
        while outgoing.len() < BATCH_BYTES {
            let Some(frame) = self.queue.pop_front() else { break };
            for mut part in [frame.head.as_slice(), &frame.data] {
                while !part.is_empty() {
                    let room = RECORD_BYTES_MAX - self.stage.len();
                    let (now, later) = part.split_at_checked(room).unwrap_or((part, &[]));
                    part = later;
                    if now.len() == RECORD_BYTES_MAX {
                        seal(Some(now), outgoing)?;
                        continue;
                    }
                    self.stage.extend_from_slice(now);
                    if self.stage.len() == RECORD_BYTES_MAX {
                        seal(Some(self.stage), outgoing)?;
                        self.stage.clear();
                    }
                }
            }
        }
        if !self.stage.is_empty() {
            seal(Some(self.stage), outgoing)?;
            self.stage.clear();
        }
        Ok(())
    }
}
