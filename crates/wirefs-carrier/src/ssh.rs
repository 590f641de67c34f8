//! Carriers over the system's ssh, with its configuration, agent, jump hosts and hardware keys.
//!
//! `ssh` runs as a child with one end of a socket pair as its standard input and output; the peer is `wirefs serve
//! --stdio`. The child ignores the terminal's interrupts: Ctrl-C is for the mount, which still has changes to send.

mod child;
mod command;
mod dial;
mod program;
mod program_dial;
mod prompts;
mod source;
mod subsystem;
mod upload;

pub use command::SshOptions;
pub use dial::SshDial;
pub use program::Programs;
pub use program_dial::ProgramDial;
pub use prompts::{PROMPTS_VARIABLE, PromptRoute, PromptedDial, UserPrompts};
pub use subsystem::{Subsystem, SubsystemDial, SubsystemProcess};
pub use upload::UploadProgress;

/// Returns a child's standard error, indented below a message.
pub(crate) fn indented(stderr: &str) -> String {
    let lines = stderr.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.map(|line| format!("\n  {line}")).collect()
}
