//! Errors of the lab.

use std::io;
use std::path::PathBuf;

/// The reason why a lab cannot be created or used.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The process may not create network namespaces.
    #[error(
        "the lab makes network namespaces and TAP devices, which needs root: run it as root or with sudo"
    )]
    NotRoot,
    /// A required program is not installed.
    #[error("`{program}` is missing; {remedy}")]
    MissingProgram {
        /// The name of the program.
        program: String,
        /// The command that installs it.
        remedy: String,
    },
    /// A program failed.
    #[error("`{command}` failed: {stderr}")]
    CommandFailed {
        /// The command line.
        command: String,
        /// Its error output.
        stderr: String,
    },
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// The failed action, completing "cannot …".
        action: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A link profile is invalid.
    #[error("link profile: {field} {problem}")]
    Profile {
        /// The invalid field.
        field: &'static str,
        /// The reason.
        problem: String,
    },
    /// A limit of the lab is exceeded.
    #[error("a lab has room for {limit} {resource}")]
    Full {
        /// The limited resource.
        resource: &'static str,
        /// The maximum.
        limit: usize,
    },
    /// A documentation page has no pair of markers for the results.
    #[error("{} does not have the lines `{begin}` and `{end}` once each, in this order", path.display())]
    Page {
        /// The page.
        path: PathBuf,
        /// The begin marker.
        begin: &'static str,
        /// The end marker.
        end: &'static str,
    },
    /// A signal ended the run.
    #[error("interrupted")]
    Interrupted,
    /// A measurement failed.
    #[error("measuring {measurement}: {problem}")]
    Probe {
        /// The measurement.
        measurement: &'static str,
        /// The reason.
        problem: String,
    },
}

impl LabError {
    /// Returns the error of a missing program, with its Debian package.
    pub fn missing(program: impl Into<String>, package: &str) -> LabError {
        LabError::MissingProgram {
            program: program.into(),
            remedy: format!("on Debian: apt-get install {package}"),
        }
    }

    /// Returns the error "cannot `action`: `source`".
    pub fn io(action: impl Into<String>, source: impl Into<io::Error>) -> LabError {
        LabError::Io { action: action.into(), source: source.into() }
    }
}
