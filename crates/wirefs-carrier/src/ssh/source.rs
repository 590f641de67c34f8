//! The receiving direction of ssh: when it ends, the child knows why.

use std::time::Duration;

use bytes::Bytes;

use super::child::Remote;
use crate::carrier::FrameSource;
use crate::closer::Closer;
use crate::lost::CarrierLost;
use crate::stream::StreamSource;

/// How long the end of the stream waits for the end of the child, to say why.
const REASON_TIME: Duration = Duration::from_secs(2);

pub(super) struct SshSource {
    stream: StreamSource,
    remote: Remote,
    closer: Closer,
}

impl SshSource {
    pub(super) fn new(stream: StreamSource, remote: Remote, closer: Closer) -> Self {
        Self { stream, remote, closer }
    }
}

impl FrameSource for SshSource {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        let ended = match self.stream.receive() {
            Ok(Some(body)) => return Ok(Some(body)),
            Err(CarrierLost::PeerFault(fault)) => return Err(CarrierLost::PeerFault(fault)),
            ended @ (Ok(None) | Err(_)) => ended,
        };
        if self.closer.is_closed() {
            return Err(CarrierLost::Closed);
        }
        let (exit, stderr) = self.remote.await_exit(REASON_TIME);
        match exit {
            Some(status) if !status.success() => {
                let what = if status.code() == Some(255) {
                    "the ssh connection broke".to_owned()
                } else {
                    format!("wirefs on the other machine ended ({status})")
                };
                Err(CarrierLost::Child { what, stderr })
            }
            Some(_) | None => ended,
        }
    }
}
