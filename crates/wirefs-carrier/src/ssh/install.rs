//! Copying this program to a remote machine.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use super::child::SshProcess;
use super::command::{self, EXIT_NO_PROGRAM, SshOptions, VERSION};
use super::indented;
use crate::address::Login;

/// The directory of the copy, below the login's home directory.
const DIRECTORY: &str = ".cache/wirefs/bin";
/// The timeout of the copy.
const INSTALL_TIME: Duration = Duration::from_secs(600);
const ANSWER_BYTES_MAX: u64 = 4 * 1024;

const EXIT_OTHER_MACHINE: i32 = 3;
const EXIT_DOES_NOT_RUN: i32 = 4;

/// `$1` is our `uname -sm`, `$2` the version; the program comes on standard input. The final name appears only when the
/// copy is complete and has run. Quoting as for [`command::serve`].
pub(super) const INSTALL: &str = "[ \"$(uname -sm)\" = \"$1\" ] || { uname -sm; exit 3; }; umask 077; \
     d=\"$HOME/.cache/wirefs/bin\"; mkdir -p \"$d\" || exit 5; t=\"$d/.wirefs-$2.$$\"; \
     cat >\"$t\" && chmod 700 \"$t\" || { rm -f \"$t\"; exit 5; }; \
     \"$t\" --version >/dev/null || { rm -f \"$t\"; exit 4; }; mv -f \"$t\" \"$d/wirefs-$2\"";

/// The program could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Our own program file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The program file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The remote machine has another architecture or system.
    #[error("{login} is {theirs}, this machine is {ours}; install wirefs for {theirs} there")]
    OtherMachine {
        /// `[user@]host`.
        login: String,
        /// `uname -sm` of the remote machine.
        theirs: String,
        /// `uname -sm` of this machine.
        ours: String,
    },
    /// The copy does not start there, for example because of an older C library.
    #[error("this wirefs does not run on {login}; install one that was built for it{}", indented(.stderr))]
    DoesNotRun {
        /// `[user@]host`.
        login: String,
        /// Its error output.
        stderr: String,
    },
    /// ssh, or the copying, failed.
    #[error("cannot copy wirefs to {login}{}", indented(.stderr))]
    Failed {
        /// `[user@]host`.
        login: String,
        /// The error output of ssh or of the remote shell.
        stderr: String,
    },
    /// This process is out of file descriptors, threads or memory.
    #[error("this machine has no resources left to run ssh: {0}")]
    Resources(io::Error),
}

/// Copies `executable` to `~/.cache/wirefs/bin/wirefs-VERSION` of the login's machine, where [`super::SshDial`] finds
/// it. Returns that path, relative to the home directory. Works only between machines of the same kind.
///
/// # Errors
/// Fails if the machine is of another kind, or the copy fails or does not run; no file is left then.
///
/// # Cost
/// One ssh connection and the program's bytes.
pub fn install_remote(
    login: &Login,
    options: &SshOptions,
    executable: &Path,
) -> Result<String, InstallError> {
    let file = File::open(executable)
        .map_err(|error| InstallError::Unreadable { path: executable.to_owned(), error })?;
    let uname = rustix::system::uname();
    let ours = format!("{} {}", uname.sysname().to_string_lossy(), uname.machine().to_string_lossy());
    let remote_command = command::script(INSTALL, &[ours.as_bytes(), VERSION.as_bytes()]);
    let (answer, output) = UnixStream::pair().map_err(InstallError::Resources)?;
    let remote = SshProcess::spawn(
        options.command(login, true, &remote_command),
        file.into(),
        std::os::fd::OwnedFd::from(output).into(),
    )
    .map_err(InstallError::Resources)?;

    let (exit, stderr) = remote.await_exit(INSTALL_TIME);
    remote.stop();
    let login = login.to_string();
    match exit.as_ref().and_then(ExitStatus::code) {
        Some(0) => Ok(format!("{DIRECTORY}/wirefs-{VERSION}")),
        Some(EXIT_OTHER_MACHINE) => {
            let theirs = read_answer(answer).map_err(InstallError::Resources)?;
            Err(InstallError::OtherMachine { login, theirs, ours })
        }
        Some(EXIT_DOES_NOT_RUN) => Err(InstallError::DoesNotRun { login, stderr }),
        Some(EXIT_NO_PROGRAM) => {
            Err(InstallError::Failed { login, stderr: format!("cannot start `{}`", options.program()) })
        }
        Some(_) | None => Err(InstallError::Failed { login, stderr }),
    }
}

/// Returns the last line printed; login scripts may have printed before.
fn read_answer(answer: UnixStream) -> io::Result<String> {
    answer.set_nonblocking(true)?;
    let mut text = Vec::new();
    match answer.take(ANSWER_BYTES_MAX).read_to_end(&mut text) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
        Ok(_) | Err(_) => {}
    }
    Ok(String::from_utf8_lossy(&text).lines().last().unwrap_or("of another kind").to_owned())
}
