//! Man pages and shell completions, generated from the argument definitions.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::Arguments;

/// Prints the main page, or writes all of them into a directory.
pub(crate) fn pages(directory: Option<&Path>) -> Result<()> {
    let command = Arguments::command();
    match directory {
        Some(directory) => {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("cannot make {}", directory.display()))?;
            clap_mangen::generate_to(command, directory)
                .with_context(|| format!("cannot write man pages into {}", directory.display()))
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page).context("cannot make the page")?;
            print(&page)
        }
    }
}

/// Prints the completions for a shell.
pub(crate) fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "wirefs", &mut script);
    print(&script)
}

/// A reader such as `head` may close the pipe early.
fn print(text: &[u8]) -> Result<()> {
    match std::io::stdout().write_all(text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("cannot print"),
        Ok(()) | Err(_) => Ok(()),
    }
}
