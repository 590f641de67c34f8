//! This program in the place of `ssh-askpass`: passes a question of ssh on, and prints the answer.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use wirefs_carrier::ssh::PROMPTS_VARIABLE;

use super::answers::{ANSWER_BYTES_MAX, GIVEN};
use crate::control::address;

/// The program and the question: the words with which ssh starts a program to ask.
const WORDS: usize = 2;

/// Returns the socket for questions, if ssh has started this program to ask. A command in place of ssh may pass its
/// environment on to `wirefs serve`, which has more words.
pub(crate) fn prompts_socket() -> Option<OsString> {
    let socket = std::env::var_os(PROMPTS_VARIABLE)?;
    (std::env::args_os().len() == WORDS).then_some(socket)
}

/// Passes the question in the first argument on. Fails without an answer.
pub(crate) fn pass_on(socket: &OsString) -> ExitCode {
    let question = std::env::args_os().nth(1).unwrap_or_default();
    let ask = || -> std::io::Result<bool> {
        let mut stream = address::connect(Path::new(socket))?;
        stream.write_all(question.as_bytes())?;
        stream.shutdown(Shutdown::Write)?;
        let mut reply = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut reply)?;
        let Some((&GIVEN, answer)) = reply.split_first() else { return Ok(false) };
        let mut output = std::io::stdout().lock();
        output.write_all(answer)?;
        output.write_all(b"\n")?;
        output.flush()?;
        reply.fill(0);
        Ok(true)
    };
    match ask() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) | Err(_) => ExitCode::FAILURE,
    }
}
