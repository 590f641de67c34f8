//! What can go wrong while a lab is built.

use std::io;
use std::path::PathBuf;

/// Why the lab cannot be built or used.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The process may not make network namespaces.
    #[error(
        "the lab makes network namespaces and TAP devices, which needs root: run it as root or with sudo"
    )]
    NotRoot,
    /// A program that the lab drives is not on the machine.
    #[error("`{program}` is missing; {remedy}")]
    MissingProgram {
        /// The program as it would be typed.
        program: String,
        /// What to do about it.
        remedy: String,
    },
    /// A program that the lab drives ended with an error.
    #[error("`{command}` failed: {stderr}")]
    CommandFailed {
        /// The command line.
        command: String,
        /// What it wrote to its standard error.
        stderr: String,
    },
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried, as the end of "cannot …".
        action: String,
        /// What the system said.
        source: io::Error,
    },
    /// A link profile asks for what the link cannot do.
    #[error("link profile: {field} {problem}")]
    Profile {
        /// The field that is wrong.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A lab has more links, or a name is longer, than it has room for.
    #[error("a lab has room for {limit} {what}")]
    Full {
        /// What there are too many of.
        what: &'static str,
        /// How many fit.
        limit: usize,
    },
    /// A page of the documentation has no place for what was measured.
    #[error("{} does not have the lines `{begin}` and `{end}` once each, in this order", path.display())]
    Page {
        /// The page.
        path: PathBuf,
        /// The line before the place.
        begin: &'static str,
        /// The line behind it.
        end: &'static str,
    },
    /// Somebody asked for an end.
    #[error("interrupted")]
    Interrupted,
    /// A measurement ended without a result.
    #[error("measuring {what}: {problem}")]
    Probe {
        /// What was measured.
        what: &'static str,
        /// Why there is no result.
        problem: String,
    },
}

impl LabError {
    /// Says which Debian package has `program`.
    pub fn missing(program: impl Into<String>, package: &str) -> LabError {
        LabError::MissingProgram {
            program: program.into(),
            remedy: format!("on Debian: apt-get install {package}"),
        }
    }

    /// Names the action that `source` ended: "cannot `action`: …".
    pub fn io(action: impl Into<String>, source: impl Into<io::Error>) -> LabError {
        LabError::Io { action: action.into(), source: source.into() }
    }
}
