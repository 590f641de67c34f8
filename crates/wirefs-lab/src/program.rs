//! Running the system's own programs, with errors that say what to do.

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::error::LabError;

/// Where programs are that ordinary users do not have in their PATH.
const SYSTEM_DIRECTORIES: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Runs `command` to its end, with `input` on its standard input; `package` has it on Debian.
///
/// # Errors
/// [`LabError::MissingProgram`], [`LabError::CommandFailed`] with what it wrote, or [`LabError::Io`].
pub fn run(command: &mut Command, package: &str, input: &str) -> Result<Output, LabError> {
    let shown = shown(command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => LabError::missing(command.get_program().to_string_lossy(), package),
        _ => LabError::io(format!("start `{shown}`"), error),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends without reading its input says why by its exit status.
        stdin.write_all(input.as_bytes()).ok();
    }
    let output =
        child.wait_with_output().map_err(|error| LabError::io(format!("wait for `{shown}`"), error))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let stderr = if said.is_empty() { output.status.to_string() } else { said };
    Err(LabError::CommandFailed { command: shown, stderr })
}

/// Where a program is: in the directories of PATH, or those of the system's own programs.
///
/// # Errors
/// [`LabError::MissingProgram`].
pub fn find(name: &str, package: &str) -> Result<PathBuf, LabError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(SYSTEM_DIRECTORIES.map(PathBuf::from));
    let mut programs = directories.map(|directory| directory.join(name));
    programs.find(|program| program.is_file()).ok_or_else(|| LabError::missing(name, package))
}

/// The command line as a person would type it, near enough for a message.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
