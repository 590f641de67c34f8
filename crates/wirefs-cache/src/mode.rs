//! Modes: when to validate, when to publish, what to fetch. A mode is a row of data; code asks the three columns only.

use std::time::Duration;

/// When something remembered must be asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validate {
    /// Never while it is leased, else at each call.
    Lease,
    /// Once it is older than this (Op's coherency window).
    Window(Duration),
    /// Contents at each open; names, attributes and listings once they are older than this.
    AtOpen(Duration),
    /// At each call.
    EachCall,
}

/// When a change is sent, and when its caller goes on. Changes of names and attributes are written through, always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publish {
    /// File data is sent at once and its caller goes on; close, fsync and locks wait for the replies.
    Background,
    /// The same, but only once there are so many bytes of it in a file, or something else is asked about the file: close, say.
    Coalesced(u32),
    /// As in the background, and close waits for the server's disk too. Until that has it, data is kept here to be sent again.
    Committed,
    /// File data stays here until close or fsync puts it in the place of the file, whole and in one step.
    Replaced,
    /// Each change is sent and its reply waited for.
    EachCall,
}

/// What is asked for beyond what the caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// Whole directories, whole small files, blocks ahead of a sequential reader.
    Blocks,
    /// What is asked for, in whole pieces, and nothing before it is.
    OnDemand,
    /// Whole directories, and of each file that is opened all, as a copy of its own.
    Whole,
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
/// What is gathered when the user names no size, as in the PODOS source.
const COALESCED_BYTES: u32 = 1024;
/// What may be gathered at most, in bytes: more would wait for close longer than it takes to send.
const COALESCED_BYTES_MAX: u32 = 16 * 1024 * 1024;

const fn row(name: &'static str, validate: Validate, publish: Publish, fetch: Fetch) -> Mode {
    Mode { name, validate, publish, fetch }
}

/// All modes, the default first.
pub const MODES: [Mode; 7] = [
    row("lease", Validate::Lease, Publish::Background, Fetch::Blocks),
    row("window", Validate::Window(WINDOW), Publish::Background, Fetch::Blocks),
    row("session", Validate::AtOpen(WINDOW), Publish::Replaced, Fetch::Whole),
    row("lazy", Validate::Window(WINDOW), Publish::Coalesced(COALESCED_BYTES), Fetch::Blocks),
    row("commit", Validate::Window(WINDOW), Publish::Committed, Fetch::Blocks),
    row("direct", Validate::Lease, Publish::EachCall, Fetch::Exact),
    row("strict", Validate::EachCall, Publish::EachCall, Fetch::Exact),
];

impl Publish {
    /// Whether a `write` returns before the server has it.
    pub fn is_write_back(self) -> bool {
        match self {
            Publish::Background | Publish::Coalesced(_) | Publish::Committed | Publish::Replaced => true,
            Publish::EachCall => false,
        }
    }

    /// How many bytes of one file are gathered before they are sent.
    pub fn coalesced_bytes(self) -> u32 {
        match self {
            Publish::Coalesced(bytes) => bytes,
            Publish::Background | Publish::Committed | Publish::Replaced | Publish::EachCall => 0,
        }
    }

    /// Whether close waits for the server's disk.
    pub fn is_committed(self) -> bool {
        match self {
            Publish::Committed => true,
            Publish::Background | Publish::Coalesced(_) | Publish::Replaced | Publish::EachCall => false,
        }
    }
}

impl Fetch {
    /// Whether what was read or written is kept for the next who asks.
    pub fn is_cached(self) -> bool {
        match self {
            Fetch::Blocks | Fetch::OnDemand | Fetch::Whole => true,
            Fetch::Exact => false,
        }
    }

    /// Whether each open file is a copy of its own.
    pub fn has_private_copies(self) -> bool {
        match self {
            Fetch::Whole => true,
            Fetch::Blocks | Fetch::OnDemand | Fetch::Exact => false,
        }
    }

    /// Whether directories and contents of files are fetched before anybody asks for them.
    pub fn prefetches(self) -> bool {
        match self {
            Fetch::Blocks | Fetch::Whole => true,
            Fetch::OnDemand | Fetch::Exact => false,
        }
    }

    /// The same without anything that nobody has asked for.
    pub fn without_prefetch(self) -> Fetch {
        match self {
            Fetch::Blocks | Fetch::OnDemand => Fetch::OnDemand,
            Fetch::Whole | Fetch::Exact => self,
        }
    }
}

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
            Validate::Window(window) | Validate::AtOpen(window) => window,
            Validate::Lease | Validate::EachCall => Duration::ZERO,
        }
    }

    /// Whether each open asks, however young what is known.
    pub fn validates_at_open(&self) -> bool {
        match self.validate {
            Validate::AtOpen(_) | Validate::EachCall => true,
            Validate::Lease | Validate::Window(_) => false,
        }
    }

    /// Whether it is of use to be promised that changes are told of.
    pub fn takes_leases(&self) -> bool {
        match self.validate {
            Validate::Lease => true,
            Validate::Window(_) | Validate::AtOpen(_) | Validate::EachCall => false,
        }
    }

    /// Whether listings may be kept by the kernel, until it is told to drop them.
    pub fn kernel_caches_listings(&self) -> bool {
        self.takes_leases() && self.fetch.is_cached()
    }

    /// Whether a mount that is alone may have done a change before the server has.
    pub fn allows_optimism(&self) -> bool {
        self.takes_leases() && self.publish.is_write_back()
    }

    /// For how long what is fetched ahead may be expected to be believed, if nobody promises more.
    pub fn prefetch_window(&self) -> Duration {
        match self.validate {
            Validate::Window(window) | Validate::AtOpen(window) => window,
            Validate::Lease | Validate::EachCall => WINDOW,
        }
    }

    /// Reads `lease`, `window`, `window=500ms`, `window=2s`, `session`, `lazy`, `lazy=4k`, `commit`, `direct`, `strict`.
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
        match (&mut mode, value) {
            (_, None) => {}
            (Mode { publish: Publish::Coalesced(bytes), .. }, Some(value)) => *bytes = parse_size(value)?,
            (Mode { validate: Validate::Window(window), publish: Publish::Background, .. }, Some(value)) => {
                *window = parse_span(value)?;
            }
            (_, Some(_)) => return Err(format!("mode `{name}` takes no value")),
        }
        Ok(mode)
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.validate, self.publish) {
            (_, Publish::Coalesced(bytes)) if bytes % 1024 == 0 => {
                write!(f, "{}={}k", self.name, bytes / 1024)
            }
            (_, Publish::Coalesced(bytes)) => write!(f, "{}={bytes}", self.name),
            (Validate::Window(window), Publish::Background) => {
                write!(f, "{}={}ms", self.name, window.as_millis())
            }
            _ => f.write_str(self.name),
        }
    }
}

fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn parse_span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time span; write 500ms or 2s");
    let (digits, unit) = split(text);
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" | "" => Ok(Duration::from_secs(number)),
        _ => Err(wrong()),
    }
}

fn parse_size(text: &str) -> Result<u32, String> {
    let wrong = || format!("`{text}` is not a size from 1 to 16m bytes; write 1000, 4k or 1m");
    let (digits, unit) = split(text);
    let number: u32 = digits.parse().map_err(|_| wrong())?;
    let factor = match unit {
        "" => 1,
        "k" | "K" => 1024,
        "m" | "M" => 1024 * 1024,
        _ => return Err(wrong()),
    };
    let bytes = number.checked_mul(factor).ok_or_else(wrong)?;
    if (1..=COALESCED_BYTES_MAX).contains(&bytes) { Ok(bytes) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests;
