//! The receiving direction of ssh: at its end, the child's exit status tells the reason.

use std::time::Duration;

use bytes::Bytes;

use super::child::SshProcess;
use crate::carrier::FrameSource;
use crate::closer::Closer;
use crate::lost::CarrierLost;
use crate::stream::StreamSource;

/// The time that the end of the stream waits for the child's exit status.
const REASON_TIME: Duration = Duration::from_secs(2);

pub(super) struct SshSource {
    stream: StreamSource,
    remote: SshProcess,
    closer: Closer,
}

impl SshSource {
    pub(super) fn new(stream: StreamSource, remote: SshProcess, closer: Closer) -> Self {
        Self { stream, remote, closer }
    }
}

impl FrameSource for SshSource {
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost> {
        let ended = match self.stream.receive() {
            Ok(Some(body)) => return Ok(Some(body)),
            Err(CarrierLost::FramingError(fault)) => return Err(CarrierLost::FramingError(fault)),
            ended @ (Ok(None) | Err(_)) => ended,
        };
        if self.closer.is_closed() {
            return Err(CarrierLost::Closed);
        }
        let (exit, stderr) = self.remote.await_exit(REASON_TIME);
        match exit {
            Some(status) if !status.success() => {
                let what = match status.code() {
                    Some(255) => "the ssh connection broke".to_owned(),
                    _ => format!("the server's program ended ({status})"),
                };
                Err(CarrierLost::Child { what, stderr })
            }
            Some(_) | None => ended,
        }
    }
}
