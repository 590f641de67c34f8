//! Programs of the system that make packages.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// One run of a program.
pub(super) struct Tool {
    command: Command,
}

impl Tool {
    /// Returns a program that will run in a folder. A name with `/` is relative to that folder.
    pub(super) fn new(folder: &Path, name: &str) -> Tool {
        let mut command = match name.contains('/') {
            true => Command::new(folder.join(name)),
            false => Command::new(name),
        };
        // The order of names and the text of dates do not depend on the user.
        command.current_dir(folder).env("LC_ALL", "C").env("TZ", "UTC");
        Tool { command }
    }

    /// Adds arguments, separated by blanks.
    pub(super) fn split_args(self, arguments: &str) -> Tool {
        self.args(arguments.split(' '))
    }

    /// Adds arguments.
    pub(super) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Tool {
        self.command.args(arguments);
        self
    }

    /// Adds an option whose value is a path.
    pub(super) fn arg_path(self, option: &str, path: &Path) -> Tool {
        self.args([OsStr::new(option), path.as_os_str()])
    }

    /// Sets an environment variable.
    pub(super) fn set(mut self, name: &str, value: impl AsRef<OsStr>) -> Tool {
        self.command.env(name, value);
        self
    }

    /// Runs the program; its output goes to the terminal.
    ///
    /// # Errors
    /// Fails if the program is missing or reports an error.
    pub(super) fn run(mut self) -> anyhow::Result<()> {
        let status = self.command.status().with_context(|| self.missing())?;
        if !status.success() {
            bail!("{} failed ({status}); its messages are above", self.name());
        }
        Ok(())
    }

    /// Runs the program and returns its standard output.
    ///
    /// # Errors
    /// Fails if the program is missing or reports an error.
    pub(super) fn read(mut self) -> anyhow::Result<String> {
        let output = self.command.stderr(Stdio::inherit()).output().with_context(|| self.missing())?;
        if !output.status.success() {
            bail!("{} failed ({}); its messages are above", self.name(), output.status);
        }
        String::from_utf8(output.stdout).with_context(|| format!("{} printed no UTF-8", self.name()))
    }

    fn name(&self) -> String {
        self.command.get_program().to_string_lossy().into_owned()
    }

    fn missing(&self) -> String {
        format!("cannot run {}; `scripts/need dist` installs it", self.name())
    }
}
