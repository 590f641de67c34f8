//! Going to the background.
//!
//! A process with threads cannot fork. So the command starts itself a second time, as a child that still has the terminal:
//! ssh can ask for a password, and errors go where the person looks. When the mount stands the child says so on a pipe,
//! leaves the terminal, and the command ends.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, anyhow};
use wirefs_driver::mount::MountControl;

use crate::mountpoint;
use crate::places;
use crate::sys;

/// What the child says once the mount stands.
const READY: &str = "ready";
/// A log that has grown to this many bytes starts anew with the next mount.
const LOG_BYTES_MAX: u64 = 1024 * 1024;

/// Starts this program again with the same words, of which so many name the command, and ends as it does: with success once
/// it is mounted.
pub(crate) fn start(words: &[OsString], command_words: usize) -> Result<ExitCode> {
    sys::keep_descriptors_from_children();
    let mut child = Command::new("/proc/self/exe")
        .arg0("wirefs")
        // The command's name, a word of ours, and what stands behind the name.
        .args(words.iter().skip(1).take(command_words))
        .arg("--reports")
        .args(words.iter().skip(1 + command_words))
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the process in the background")?;
    let report = child.stdout.take().map(BufReader::new);
    let mut line = String::new();
    if let Some(mut report) = report {
        report.read_line(&mut line).context("cannot read the report of the process in the background")?;
    }
    if line.trim_end() == READY {
        return Ok(ExitCode::SUCCESS);
    }
    let status = child.wait().context("cannot wait for the process in the background")?;
    match status.code() {
        // It has told why.
        Some(code) if code != 0 => Ok(ExitCode::from(u8::try_from(code).unwrap_or(1))),
        Some(_) => Err(anyhow!("the process in the background ended before the mount stood")),
        None => Err(anyhow!(
            "the process in the background was killed by signal {}",
            status.signal().unwrap_or_default()
        )),
    }
}

/// Reports that the mount stands and leaves the terminal.
///
/// # Errors
/// The command has gone: then nobody wants the mount, and it is taken away.
pub(super) fn detach(mountpoint: &Path, control: &MountControl) -> Result<()> {
    report_and_leave(mountpoint).inspect_err(|_| super::end(control))
}

/// The same of something that is not one mount.
///
/// # Errors
/// The command has gone: then nobody wants it, and the caller takes it away.
pub(crate) fn report_and_leave(mountpoint: &Path) -> Result<()> {
    let told = writeln!(std::io::stdout(), "{READY}").and_then(|()| std::io::stdout().flush());
    told.map_err(|error| anyhow!("the command that wanted the mount has gone: {error}"))?;
    leave(mountpoint).context("cannot leave the terminal")
}

fn leave(mountpoint: &Path) -> Result<()> {
    // Fails only for the leader of a group, which a started process is not.
    let _session = rustix::process::setsid();
    // A directory that the process stands in could not be unmounted.
    std::env::set_current_dir("/").context("cannot go to /")?;
    let nothing =
        OpenOptions::new().read(true).write(true).open("/dev/null").context("cannot open /dev/null")?;
    let log = open_log(mountpoint).ok();
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(log.as_ref().unwrap_or(&nothing))?;
    rustix::stdio::dup2_stderr(log.as_ref().unwrap_or(&nothing))?;
    Ok(())
}

/// The log of a mountpoint, below the state directory. Without a home there is none.
fn open_log(mountpoint: &Path) -> Result<File> {
    let directory = places::state_dir()?;
    places::make_private(&directory)?;
    let path = directory.join(format!("{}.log", mountpoint::file_name(mountpoint)));
    let is_long = std::fs::metadata(&path).is_ok_and(|found| found.len() > LOG_BYTES_MAX);
    if is_long {
        std::fs::remove_file(&path)?;
    }
    Ok(OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?)
}
