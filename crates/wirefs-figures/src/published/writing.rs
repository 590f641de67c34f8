//! One file that is written in small pieces, and its server killed meanwhile or not.

use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;
use std::{fmt, fs};

use super::batch::{Crash, Written, content};
use super::grounds::{Grounds, wrong};
use super::{Peer, Plan};
use wirefs_lab::LabError;
use wirefs_lab::program;

/// One file, written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writing {
    /// By what.
    pub peer: Peer,
    /// In how many pieces.
    pub pieces: usize,
    /// When the server was killed.
    pub crash: Crash,
    /// From before the file was made until it was closed.
    pub took: Duration,
    /// From the kill until the next server listened.
    pub restart: Duration,
    /// Bytes that the client has sent, headers included.
    pub sent_bytes: u64,
}

impl fmt::Display for Writing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Writing { peer, pieces, crash, took, restart, sent_bytes } = self;
        let (peer, crash) = (peer.name(), crash.name());
        write!(
            out,
            "{peer}, {pieces} KiB, {crash}: {took:.1?}, restart {restart:.1?}, {sent_bytes} bytes sent"
        )
    }
}

impl Grounds {
    /// Mounts, writes a file of so many pieces, kills the server when that is to be, and compares what the server's directory has
    /// as soon as the writer has closed the file.
    pub(super) fn write(
        &mut self,
        plan: &Plan,
        peer: Peer,
        pieces: usize,
        crash: Crash,
    ) -> Result<Writing, LabError> {
        let mount = self.mount(peer)?;
        let before = self.sent_bytes()?;
        let mut command = Command::new(&plan.program);
        command.arg("write-batch").arg(mount.path().join("batch")).args(["--pieces", &pieces.to_string()]);
        let victim = self.server_process().filter(|_| crash != Crash::None);
        if let Some(victim) = victim {
            command.args(["--crash", crash.word(), "--victim", &victim.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let shown = program::shown(&command);
        let writer = command.spawn().map_err(|error| LabError::io(format!("start `{shown}`"), error))?;
        let writer = thread::spawn(move || {
            let output = writer.wait_with_output();
            let is_done = output.as_ref().is_ok_and(|output| output.status.success());
            if !is_done {
                // Nobody would kill the server any more, and it is waited for.
                Grounds::end(victim);
            }
            output
        });
        let restarted = victim.map(|_| self.await_crash()).transpose();
        let output = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let output = output.map_err(|error| LabError::io(format!("wait for `{shown}`"), error))?;
        let written = account(&output, &shown)?;
        let restarted = restarted?;
        if !written.is_as_meant(crash, pieces) {
            return Err(wrong(format!("the server was not killed as meant ({}): {written:?}", crash.name())));
        }
        let arrived = self.export().join("batch");
        let bytes = fs::read(&arrived).map_err(|error| LabError::io("read what arrived", error))?;
        if bytes != content(pieces) {
            return Err(wrong(format!("{} bytes arrived that are not those written", bytes.len())));
        }
        let sent_bytes = self.sent_bytes()?.saturating_sub(before);
        drop(mount);
        fs::remove_file(&arrived).map_err(|error| LabError::io("remove what arrived", error))?;
        let restart = restarted.map_or(Duration::ZERO, |at| at.saturating_sub(written.killed_at));
        Ok(Writing { peer, pieces, crash, took: written.took, restart, sent_bytes })
    }
}

fn account(output: &Output, shown: &str) -> Result<Written, LabError> {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let failed = |stderr: String| LabError::CommandFailed { command: shown.to_owned(), stderr };
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Written::parse(&said).ok_or_else(|| failed(format!("it said `{}`", said.trim())))
}
