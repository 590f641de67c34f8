//! Runs programs of the system, with helpful errors.

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::error::LabError;

/// The directories of system programs, which ordinary users may not have in PATH.
const SYSTEM_DIRECTORIES: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Runs `command` until it ends, with `input` on its standard input; `package` is its Debian package.
///
/// # Errors
/// [`LabError::MissingProgram`], [`LabError::CommandFailed`] with its error output, or [`LabError::Io`].
pub fn run(command: &mut Command, package: &str, input: &str) -> Result<Output, LabError> {
    let shown = shown(command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => LabError::missing(command.get_program().to_string_lossy(), package),
        _ => LabError::io(format!("start `{shown}`"), error),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends without reading its input reports the reason in its exit status.
        stdin.write_all(input.as_bytes()).ok();
    }
    let output =
        child.wait_with_output().map_err(|error| LabError::io(format!("wait for `{shown}`"), error))?;
    if output.status.success() {
        return Ok(output);
    }
    let stderr_text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let stderr = if stderr_text.is_empty() { output.status.to_string() } else { stderr_text };
    Err(LabError::CommandFailed { command: shown, stderr })
}

/// Finds a program in PATH or in the directories of system programs.
///
/// # Errors
/// [`LabError::MissingProgram`].
pub fn find(name: &str, package: &str) -> Result<PathBuf, LabError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(SYSTEM_DIRECTORIES.map(PathBuf::from));
    let mut programs = directories.map(|directory| directory.join(name));
    programs.find(|program| program.is_file()).ok_or_else(|| LabError::missing(name, package))
}

/// Returns the command line for messages.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
