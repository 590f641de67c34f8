//! `wirefs doctor`: checks this machine, and tells how to fix problems.

mod files;
mod machine;
mod network;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use crate::arguments;
use crate::terminal::say;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum CheckState {
    /// No problem.
    Ok,
    /// Something does not work, or not for every user.
    Warn,
    /// wirefs does not work.
    Bad,
}

/// One check.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    state: CheckState,
    found: String,
    /// The fix; `None` if nothing is to be done.
    mend: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { check, state: CheckState::Ok, found: found.into(), mend: None }
    }

    fn warn(check: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Finding {
        Finding { check, state: CheckState::Warn, found: found.into(), mend: Some(mend.into()) }
    }

    fn bad(check: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Finding {
        Finding { check, state: CheckState::Bad, found: found.into(), mend: Some(mend.into()) }
    }
}

/// Prints the checks. Fails if one is bad.
pub(crate) fn run(arguments: &arguments::Doctor) -> Result<ExitCode> {
    let findings: Vec<Finding> =
        [machine::checks(), files::checks(), network::checks()].into_iter().flatten().collect();
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&findings)?);
    } else {
        print(&findings);
    }
    let is_bad = findings.iter().any(|finding| finding.state == CheckState::Bad);
    Ok(if is_bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print(findings: &[Finding]) {
    let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    for finding in findings {
        let (word, colour) = match finding.state {
            CheckState::Ok => ("ok  ", "32"),
            CheckState::Warn => ("warn", "33"),
            CheckState::Bad => ("BAD ", "31"),
        };
        let word = if colours { format!("\x1b[{colour}m{word}\x1b[0m") } else { word.to_owned() };
        say!("{word}  {:<16} {}", finding.check, finding.found);
        if let Some(mend) = &finding.mend {
            say!("      {:<16} -> {mend}", "");
        }
    }
}
