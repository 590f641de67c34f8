//! Local and remote command lines.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use super::program::Programs;
use super::prompts::PromptRoute;
use super::upload::UploadProgress;
use crate::address::Login;
use crate::limits::CONNECT_TIMEOUT;

/// The starter's exit status if the ssh program does not exist. ssh itself exits with 255; remote programs have their
/// own.
pub(super) const EXIT_NO_PROGRAM: i32 = 253;

/// Starts ssh so that it outlives Ctrl-C and a closed terminal: exec preserves ignored signals.
const STARTER: &str = "command -v \"$1\" >/dev/null 2>&1 || exit 253; trap \"\" INT QUIT HUP; exec \"$@\"";

/// Runs the remote wirefs: the installed one, else a copy. `$1` is the directory, `$2` has the ids of usable copies,
/// separated by blanks. Without any, it receives a copy as [`super::upload`] describes. The final name appears only when
/// the copy is complete and has run. The text contains no single quotes, backslashes or newlines, since it passes
/// through the login shell, whichever that is.
const SERVE: &str = "command -v wirefs >/dev/null 2>&1 && exec wirefs serve --stdio -- \"$1\"; \
     umask 077; u=$(id -u); \
     a=\"${XDG_CACHE_HOME:-$HOME/.cache}/wirefs/bin\"; \
     for d in \"$a\" \"/var/tmp/wirefs-bin-$u\" \"/tmp/wirefs-bin-$u\" \"/dev/shm/wirefs-bin-$u\"; do \
     [ -O \"$d\" ] || continue; for i in $2; do w=\"$d/wirefs-$i\"; \
     [ -x \"$w\" ] && touch -c \"$w\" && exec \"$w\" serve --stdio -- \"$1\"; done; done; \
     [ -d \"$1\" ] || { echo \"wirefs: $1 does not exist\" >&2; exit 2; }; \
     echo \"wirefs-missing $(uname -sm)\"; read -r size hash id || exit 127; \
     command -v gzip >/dev/null 2>&1 || exit 3; t=; \
     c() { rm -f \"$t\"; exit \"$1\"; }; trap \"c 6\" HUP INT TERM PIPE; \
     for d in \"$a\" \"/var/tmp/wirefs-bin-$u\" \"/tmp/wirefs-bin-$u\" \"/dev/shm/wirefs-bin-$u\"; do \
     mkdir -p \"$d\" 2>/dev/null; [ -O \"$d\" ] || continue; t=\"$d/.wirefs-$$\"; \
     { echo exit 0 >\"$t\"; } 2>/dev/null && chmod 700 \"$t\" && \"$t\" 2>/dev/null && break; rm -f \"$t\"; t=; done; \
     [ -n \"$t\" ] || exit 5; \
     head -c \"$size\" | gzip -dc >\"$t\" || c 6; \
     command -v sha256sum >/dev/null 2>&1 && { s=$(sha256sum \"$t\"); [ \"${s%% *}\" = \"$hash\" ] || c 8; }; \
     \"$t\" --version >/dev/null || c 4; mv -f \"$t\" \"$d/wirefs-$id\" || c 6; trap - HUP INT TERM PIPE; \
     find \"$d\" -name \"wirefs-*\" -mtime +30 -exec rm -f {} + 2>/dev/null; \
     find \"$d\" -name \".wirefs-*\" -mtime +0 -exec rm -f {} + 2>/dev/null; \
     exec \"$d/wirefs-$id\" serve --stdio -- \"$1\"";

/// The place of ssh's questions, such as for a password.
#[derive(Clone, Copy, Debug)]
pub(super) enum Questions<'a> {
    /// This process's terminal.
    Terminal,
    /// A user's command.
    Route(&'a PromptRoute),
    /// Nobody can answer: ssh fails instead.
    None,
}

/// Options of ssh.
#[derive(Clone)]
pub struct SshOptions {
    program: OsString,
    arguments: Vec<OsString>,
    /// The programs that may be copied to the host.
    pub(super) programs: Programs,
    /// Called with the progress of a copy, by a dial that a user waits for.
    pub(super) report: Arc<dyn Fn(UploadProgress) + Send + Sync>,
    /// The timeout of ssh's TCP connection.
    pub connect_timeout: Duration,
    /// The time until the remote wirefs answers, if a user may have to type a password.
    pub answer_timeout: Duration,
}

impl Default for SshOptions {
    fn default() -> Self {
        Self {
            program: "ssh".into(),
            arguments: Vec::new(),
            programs: Programs::default(),
            report: Arc::new(|_| {}),
            connect_timeout: CONNECT_TIMEOUT,
            answer_timeout: Duration::from_secs(180),
        }
    }
}

impl SshOptions {
    /// Uses another program, with arguments separated by blanks: `ssh -p 2222 -i key`.
    pub fn with_command(mut self, command: impl AsRef<OsStr>) -> Self {
        let mut words = command
            .as_ref()
            .as_bytes()
            .split(|byte| byte.is_ascii_whitespace())
            .filter(|word| !word.is_empty())
            .map(|word| OsStr::from_bytes(word).to_owned());
        if let Some(program) = words.next() {
            self.program = program;
            self.arguments = words.collect();
        }
        self
    }

    /// Copies one of these programs to a host without wirefs, and reports the progress.
    pub fn with_programs(
        self,
        programs: Programs,
        report: impl Fn(UploadProgress) + Send + Sync + 'static,
    ) -> Self {
        Self { programs, report: Arc::new(report), ..self }
    }

    /// Returns the program's name, for messages.
    pub(super) fn program(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }

    /// Returns the command line that a user can type to reach the same host, for messages.
    pub(super) fn shown(&self, login: &Login) -> String {
        let words = std::iter::once(&self.program).chain(&self.arguments);
        let mut line: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        line.extend(login.port.map(|port| format!("-p {port}")));
        line.push(destination(login));
        line.join(" ")
    }

    /// Returns the command that runs `remote` on the login's machine.
    pub(super) fn command(&self, login: &Login, questions: Questions<'_>, remote: &OsStr) -> Command {
        let mut command = self.reach(login, questions);
        command.arg("--").arg(destination(login)).arg(remote);
        command
    }

    /// Returns the command that connects to a subsystem of the login's machine.
    pub(super) fn subsystem(&self, login: &Login, questions: Questions<'_>, name: &str) -> Command {
        let mut command = self.reach(login, questions);
        command.arg("-s").arg("--").arg(destination(login)).arg(name);
        command
    }

    /// Returns ssh with its options, up to the destination.
    fn reach(&self, login: &Login, questions: Questions<'_>) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", STARTER, "sh"]).arg(&self.program).args(&self.arguments);
        let connect = format!("ConnectTimeout={}", self.connect_timeout.as_secs().max(1));
        // Without the agent, X11 and forwardings: the host gets a stream and nothing else of this machine.
        command.args(["-T", "-a", "-x", "-o", "ClearAllForwardings=yes", "-o", &connect]);
        command.args(["-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"]);
        match questions {
            Questions::Terminal => {}
            Questions::Route(route) => route.apply(&mut command),
            Questions::None => {
                command.args(["-o", "BatchMode=yes"]);
            }
        }
        if let Some(port) = login.port {
            command.arg("-p").arg(port.to_string());
        }
        command
    }
}

/// Returns the login as ssh takes it, without brackets.
fn destination(login: &Login) -> String {
    match &login.user {
        Some(user) => format!("{user}@{}", login.host),
        None => login.host.clone(),
    }
}

/// Returns the remote command that serves `path`, by the installed wirefs or a copy with one of the ids.
pub(super) fn serve(path: &[u8], ids: &str) -> OsString {
    let path = if path.is_empty() { b"." } else { path };
    script(SERVE, &[path, ids.as_bytes()])
}

/// Returns a remote command that runs `script` with arguments.
fn script(script: &str, arguments: &[&[u8]]) -> OsString {
    let mut line = b"exec sh -c ".to_vec();
    line.extend(quote(script.as_bytes()));
    line.extend(b" wirefs");
    for argument in arguments {
        line.push(b' ');
        line.extend(quote(argument));
    }
    OsStr::from_bytes(&line).to_owned()
}

/// Quotes one word for the login shell.
fn quote(word: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(byte);
    if !word.is_empty() && word.iter().all(is_plain) {
        return word.to_vec();
    }
    let mut quoted = vec![b'\''];
    for &byte in word {
        match byte {
            b'\'' => quoted.extend(b"'\\''"),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

impl std::fmt::Debug for SshOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SshOptions { program, arguments, programs, report: _, connect_timeout, answer_timeout } = self;
        let mut shown = f.debug_struct("SshOptions");
        shown.field("program", program).field("arguments", arguments).field("programs", programs);
        shown.field("connect_timeout", connect_timeout).field("answer_timeout", answer_timeout).finish()
    }
}

#[cfg(test)]
mod tests;
