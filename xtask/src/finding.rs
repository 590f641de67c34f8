//! One thing that a check does not accept, with how to mend it.

use std::fmt;

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Error,
    Warning,
}

/// A place, what is wrong there, and how to mend it. Ordered by file and line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    file: String,
    line: usize,
    weight: Weight,
    message: String,
    mend: String,
}

impl Finding {
    /// A finding that fails the check. `line` counts from 1.
    pub(crate) fn error(
        file: &str,
        line: usize,
        message: impl Into<String>,
        mend: impl Into<String>,
    ) -> Finding {
        Finding { file: file.into(), line, weight: Weight::Error, message: message.into(), mend: mend.into() }
    }

    /// A finding that is printed but fails nothing. `line` counts from 1.
    pub(crate) fn warning(
        file: &str,
        line: usize,
        message: impl Into<String>,
        mend: impl Into<String>,
    ) -> Finding {
        Finding { weight: Weight::Warning, ..Finding::error(file, line, message, mend) }
    }

    /// Whether this fails the check.
    pub(crate) fn is_error(&self) -> bool {
        self.weight == Weight::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weight = match self.weight {
            Weight::Error => "",
            Weight::Warning => "warning: ",
        };
        write!(f, "{}:{}: {weight}{}; mend: {}", self.file, self.line, self.message, self.mend)
    }
}
