//! A violation of a rule, with its fix.

use std::fmt;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Error,
    Warning,
}

/// A location, the violation there, and its fix. Ordered by file and line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    file: String,
    line: usize,
    severity: Severity,
    message: String,
    fix: String,
}

impl Finding {
    /// Returns a finding that fails the check. `line` counts from 1.
    pub(crate) fn error(
        file: &str,
        line: usize,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Finding {
        Finding {
            file: file.into(),
            line,
            severity: Severity::Error,
            message: message.into(),
            fix: fix.into(),
        }
    }

    /// Returns a finding that is only printed. `line` counts from 1.
    pub(crate) fn warning(
        file: &str,
        line: usize,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Finding {
        Finding { severity: Severity::Warning, ..Finding::error(file, line, message, fix) }
    }

    /// Returns whether the finding fails the check.
    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "",
            Severity::Warning => "warning: ",
        };
        write!(f, "{}:{}: {severity}{}; fix: {}", self.file, self.line, self.message, self.fix)
    }
}
