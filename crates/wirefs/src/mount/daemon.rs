//! Going to the background.
//!
//! A process with threads cannot fork. So the command starts itself a second time, as a child that still has the
//! terminal: ssh can ask for a password, and the user sees errors. When the mount is ready, the child reports that on a
//! pipe and detaches from the terminal, and the command exits.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, anyhow};
use wirefs_mount::MountControl;

use crate::mountpoint;
use crate::sys;
use crate::user_dirs;

/// The child's report when the mount is ready.
const READY: &str = "ready";
/// A log of this size is truncated by the next mount, in bytes.
const LOG_BYTES_MAX: u64 = 1024 * 1024;

/// Starts this program again with the same words, the first `command_words` of which name the command. Exits as the
/// child does: with success once it is mounted.
pub(crate) fn start(words: &[OsString], command_words: usize) -> Result<ExitCode> {
    sys::keep_descriptors_from_children();
    let mut child = Command::new("/proc/self/exe")
        .arg0("wirefs")
        // The command's name, our own option, and the remaining words.
        .args(words.iter().skip(1).take(command_words))
        .arg("--reports")
        .args(words.iter().skip(1 + command_words))
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the background process")?;
    let report = child.stdout.take().map(BufReader::new);
    let mut line = String::new();
    if let Some(mut report) = report {
        report.read_line(&mut line).context("cannot read the report of the background process")?;
    }
    if line.trim_end() == READY {
        return Ok(ExitCode::SUCCESS);
    }
    let status = child.wait().context("cannot wait for the background process")?;
    match status.code() {
        // It has printed the error.
        Some(code) if code != 0 => Ok(ExitCode::from(u8::try_from(code).unwrap_or(1))),
        Some(_) => Err(anyhow!("the background process ended before the mount was ready")),
        None => Err(anyhow!(
            "the background process was killed by signal {}",
            status.signal().unwrap_or_default()
        )),
    }
}

/// Reports that the mount is ready and detaches from the terminal.
///
/// # Errors
/// Fails if the command has ended; then the mount is not wanted, and is removed.
pub(super) fn detach(mountpoint: &Path, control: &MountControl) -> Result<()> {
    report_and_detach(mountpoint).inspect_err(|_| super::end(control))
}

/// The same for a process other than a mount.
///
/// # Errors
/// Fails if the command has ended; then the caller must clean up.
pub(crate) fn report_and_detach(mountpoint: &Path) -> Result<()> {
    let output = leave_terminal(mountpoint).context("cannot leave the terminal")?;
    let reported = writeln!(std::io::stdout(), "{READY}").and_then(|()| std::io::stdout().flush());
    reported.map_err(|error| anyhow!("the command that started the mount ended: {error}"))?;
    rustix::stdio::dup2_stdout(&output).context("cannot leave the terminal")
}

/// Leaves the terminal, but for standard output, whose replacement is returned. All lines after the report are in the log.
fn leave_terminal(mountpoint: &Path) -> Result<File> {
    // Fails only for a process group leader, which a child is not.
    let _session = rustix::process::setsid();
    // A process's working directory cannot be unmounted.
    std::env::set_current_dir("/").context("cannot go to /")?;
    let nothing =
        OpenOptions::new().read(true).write(true).open("/dev/null").context("cannot open /dev/null")?;
    let log = open_log(mountpoint).ok();
    rustix::stdio::dup2_stdin(&nothing)?;
    let output = log.unwrap_or(nothing);
    // Before the log is one, so that no line of it lacks the time.
    wirefs_mount::log::begin_file();
    rustix::stdio::dup2_stderr(&output)?;
    Ok(output)
}

/// Opens the log of a mountpoint, below the state directory. Without a home directory there is none.
fn open_log(mountpoint: &Path) -> Result<File> {
    let directory = user_dirs::state_dir()?;
    user_dirs::create_private(&directory)?;
    let path = directory.join(format!("{}.log", mountpoint::file_name(mountpoint)));
    let is_long = std::fs::metadata(&path).is_ok_and(|found| found.len() > LOG_BYTES_MAX);
    if is_long {
        std::fs::remove_file(&path)?;
    }
    Ok(OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?)
}
