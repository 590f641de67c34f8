//! Modes: when to validate, when to publish, what to fetch. A mode is a row of data; code asks the three columns only.

use std::time::Duration;

/// When something remembered must be asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validate {
    /// Never while it is leased, else at each call.
    Lease,
    /// Once it is older than this (Op's coherency window).
    Window(Duration),
    /// At each call.
    EachCall,
}

/// When a change is sent, and when its caller goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publish {
    /// File data is sent at once and its caller goes on; close, fsync and locks wait for the replies. Changes of names
    /// and attributes are written through.
    Background,
    /// Each change is sent and its reply waited for.
    EachCall,
}

/// What is asked for beyond what the caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// Whole directories, whole small files, blocks ahead of a sequential reader.
    Blocks,
    /// Nothing.
    Exact,
}

/// One mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// How the user calls it.
    pub name: &'static str,
    /// When to validate.
    pub validate: Validate,
    /// When to publish.
    pub publish: Publish,
    /// What to fetch.
    pub fetch: Fetch,
}

/// The window when the user names none, as in the Op source.
const WINDOW: Duration = Duration::from_secs(1);

/// All modes, the default first.
pub const MODES: [Mode; 3] = [
    Mode { name: "lease", validate: Validate::Lease, publish: Publish::Background, fetch: Fetch::Blocks },
    Mode {
        name: "window",
        validate: Validate::Window(WINDOW),
        publish: Publish::Background,
        fetch: Fetch::Blocks,
    },
    Mode { name: "strict", validate: Validate::EachCall, publish: Publish::EachCall, fetch: Fetch::Exact },
];

impl Default for Mode {
    fn default() -> Mode {
        let [first, ..] = MODES;
        first
    }
}

impl Mode {
    /// How long something may be believed after it was asked for.
    pub fn window(&self) -> Duration {
        match self.validate {
            Validate::Window(window) => window,
            Validate::Lease | Validate::EachCall => Duration::ZERO,
        }
    }

    /// Whether it is of use to be promised that changes are told of.
    pub fn takes_leases(&self) -> bool {
        match self.validate {
            Validate::Lease => true,
            Validate::Window(_) | Validate::EachCall => false,
        }
    }

    /// For how long what is fetched ahead may be expected to be believed, if nobody promises more.
    pub fn foresight(&self) -> Duration {
        match self.validate {
            Validate::Window(window) => window,
            Validate::Lease | Validate::EachCall => WINDOW,
        }
    }

    /// Reads `lease`, `window`, `window=500ms`, `window=2s`, `strict`.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn parse(text: &str) -> Result<Mode, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let row = MODES.into_iter().find(|mode| mode.name == name);
        let Some(mut mode) = row else {
            let names: Vec<_> = MODES.iter().map(|mode| mode.name).collect();
            return Err(format!("there is no mode `{name}`; choose one of: {}", names.join(", ")));
        };
        match (mode.validate, value) {
            (_, None) => {}
            (Validate::Window(_), Some(value)) => mode.validate = Validate::Window(parse_span(value)?),
            (Validate::Lease | Validate::EachCall, Some(_)) => {
                return Err(format!("mode `{name}` takes no value"));
            }
        }
        Ok(mode)
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.validate {
            Validate::Window(window) => write!(f, "{}={}ms", self.name, window.as_millis()),
            Validate::Lease | Validate::EachCall => f.write_str(self.name),
        }
    }
}

fn parse_span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time span; write 500ms or 2s");
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" | "" => Ok(Duration::from_secs(number)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests;
