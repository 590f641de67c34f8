//! The socket at which questions of ssh arrive, and their answers from the terminal.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::secret_line::{Line, SecretTerminal};
use crate::control::address;
use crate::failure::failure;
use crate::sys::Signals;
use crate::user_dirs;
use wirefs_carrier::printable;

/// The longest question, in bytes.
const QUESTION_BYTES_MAX: u64 = 16 * 1024;
/// The longest answer with its mark, in bytes.
pub(super) const ANSWER_BYTES_MAX: u64 = 4 * 1024;
/// Stands before an answer.
pub(super) const GIVEN: u8 = b'+';
/// The time of a program to send its question.
const QUESTION_TIME: Duration = Duration::from_secs(5);

/// The outcome of a question.
pub(super) enum Answered {
    /// It was answered, or ended without an answer.
    Over,
    /// A signal ends the command.
    Ended(i32),
}

/// A socket of this command, which only this user can use.
pub(super) struct PromptSocket {
    path: PathBuf,
    listener: UnixListener,
}

impl Drop for PromptSocket {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.path);
    }
}

impl PromptSocket {
    pub(super) fn open() -> Result<PromptSocket> {
        let name = format!("{}.prompts", std::process::id());
        let path = user_dirs::create_runtime_dir()?.join(name);
        // Left by a killed command whose number was given again.
        let _stale = std::fs::remove_file(&path);
        let cannot = || format!("cannot make the socket {}", path.display());
        let listener = address::bind(&path).with_context(cannot)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).with_context(cannot)?;
        listener.set_nonblocking(true).with_context(cannot)?;
        Ok(PromptSocket { path, listener })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Asks the user the next question. `process`: its end, or a message of it, ends the question.
    ///
    /// # Errors
    /// There is no terminal.
    pub(super) fn answer(&self, process: &impl AsFd, signals: &Signals) -> Result<Answered> {
        let Ok((mut stream, _)) = self.listener.accept() else { return Ok(Answered::Over) };
        let Ok(question) = receive(&mut stream) else { return Ok(Answered::Over) };
        let mut terminal = SecretTerminal::open().map_err(|error| {
            failure(
                format!("ssh asks a question, and there is no terminal to ask it: {error}"),
                "run `wirefs reconnect` in a terminal",
            )
        })?;
        match terminal.ask(&shown_question(&question), process, &stream, signals)? {
            Line::Typed(mut answer) => {
                let _gone = stream.write_all(&[GIVEN]).and_then(|()| stream.write_all(&answer));
                answer.fill(0);
                Ok(Answered::Over)
            }
            Line::Over => Ok(Answered::Over),
            Line::Signal(signal) => Ok(Answered::Ended(signal)),
        }
    }
}

fn receive(stream: &mut UnixStream) -> std::io::Result<String> {
    let asker = rustix::net::sockopt::socket_peercred(&*stream)?;
    if asker.uid != rustix::process::geteuid() {
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(QUESTION_TIME))?;
    let mut question = Vec::new();
    stream.take(QUESTION_BYTES_MAX).read_to_end(&mut question)?;
    Ok(String::from_utf8_lossy(&question).into_owned())
}

/// Returns the question with its lines below each other. Its text may come from the host.
fn shown_question(question: &str) -> String {
    let lines: Vec<String> = question.trim_end().lines().map(|line| printable(line.as_bytes())).collect();
    format!("ssh: {} (not shown as you type) ", lines.join("\n     "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-177: the text of a host cannot move the cursor or hide itself.
    #[test]
    fn control_characters_of_a_question_are_escaped() {
        let text = shown_question("me@host\x1b[8m's\rpass\u{202e}word:\nnext\x07 ");
        assert_eq!(
            text,
            "ssh: me@host\\u{1b}[8m's\\rpass\\u{202e}word:\n     next\\u{7} (not shown as you type) "
        );
    }
}
