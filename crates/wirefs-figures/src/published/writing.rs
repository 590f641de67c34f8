//! The measurement of one batch, with or without a crash of the server.

use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;
use std::{fmt, fs};

use super::batch::{BatchOutcome, CrashPoint, content};
use super::test_bed::{PublishedTestBed, measurement_error};
use super::{PublishedPeer, PublishedPlan};
use wirefs_lab::LabError;
use wirefs_lab::program;

/// One measured batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSample {
    /// The peer.
    pub peer: PublishedPeer,
    /// The number of pieces.
    pub pieces: usize,
    /// The point at which the server was killed.
    pub crash: CrashPoint,
    /// From before the creation of the file until it was closed.
    pub elapsed: Duration,
    /// From the kill until the restarted server listened.
    pub restart: Duration,
    /// Bytes that the client sent, headers included.
    pub sent_bytes: u64,
}

impl fmt::Display for BatchSample {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BatchSample { peer, pieces, crash, elapsed, restart, sent_bytes } = self;
        let (peer, crash) = (peer.name(), crash.name());
        write!(
            out,
            "{peer}, {pieces} KiB, {crash}: {elapsed:.1?}, restart {restart:.1?}, {sent_bytes} bytes sent"
        )
    }
}

impl PublishedTestBed {
    /// Mounts, writes a file of `pieces` pieces, and kills the server at `crash`. Compares the file in the exported
    /// directory as soon as the writer has closed it.
    pub(super) fn write(
        &mut self,
        plan: &PublishedPlan,
        peer: PublishedPeer,
        pieces: usize,
        crash: CrashPoint,
    ) -> Result<BatchSample, LabError> {
        let mount = self.mount(peer)?;
        let before = self.sent_bytes()?;
        let mut command = Command::new(&plan.program);
        command.arg("write-batch").arg(mount.path().join("batch")).args(["--pieces", &pieces.to_string()]);
        let server_pid = self.server_pid().filter(|_| crash != CrashPoint::Never);
        if let Some(server_pid) = server_pid {
            command.args(["--crash", crash.word(), "--server-pid", &server_pid.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let command_line = program::shown(&command);
        let writer =
            command.spawn().map_err(|error| LabError::io(format!("start `{command_line}`"), error))?;
        let writer = thread::spawn(move || {
            let output = writer.wait_with_output();
            let is_done = output.as_ref().is_ok_and(|output| output.status.success());
            if !is_done {
                // Otherwise the parent would wait for ever for the kill of the server.
                PublishedTestBed::end(server_pid);
            }
            output
        });
        let restarted = server_pid.map(|_| self.await_crash()).transpose();
        let output = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let output = output.map_err(|error| LabError::io(format!("wait for `{command_line}`"), error))?;
        let written = parse_outcome(&output, &command_line)?;
        let restarted = restarted?;
        if !written.has_crashed_at(crash, pieces) {
            return Err(measurement_error(format!(
                "the server was not killed at the intended point ({}): {written:?}",
                crash.name()
            )));
        }
        let received = self.export().join("batch");
        let bytes = fs::read(&received).map_err(|error| LabError::io("read the received file", error))?;
        if bytes != content(pieces) {
            return Err(measurement_error(format!(
                "{} received bytes differ from those written",
                bytes.len()
            )));
        }
        let sent_bytes = self.sent_bytes()?.saturating_sub(before);
        drop(mount);
        fs::remove_file(&received).map_err(|error| LabError::io("remove the received file", error))?;
        let restart = restarted.map_or(Duration::ZERO, |at| at.saturating_sub(written.killed_at));
        Ok(BatchSample { peer, pieces, crash, elapsed: written.elapsed, restart, sent_bytes })
    }
}

fn parse_outcome(output: &Output, command_line: &str) -> Result<BatchOutcome, LabError> {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let failed = |stderr: String| LabError::CommandFailed { command: command_line.to_owned(), stderr };
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    BatchOutcome::parse(&stdout).ok_or_else(|| failed(format!("unexpected output `{}`", stdout.trim())))
}
