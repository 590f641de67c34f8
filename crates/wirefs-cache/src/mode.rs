//! Cache modes: when to validate, when to publish, what to fetch. A mode is a table row; code checks only the
//! three columns.

use std::time::Duration;

/// When cached data must be validated at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validate {
    /// Never while leased, otherwise at each call.
    Lease,
    /// When it is older than this (Op's coherency window).
    Window(Duration),
    /// Contents at each open (close-to-open consistency, as in NFS); names, attributes and listings when
    /// older than this.
    AtOpen(Duration),
    /// At each call.
    EachCall,
}

/// When a change is sent, and when its call returns. Changes of names and attributes are always written
/// through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publish {
    /// File data is sent immediately and the call returns before the reply; close, fsync and locks wait for
    /// the replies.
    Background,
    /// Like `Background`, but data is sent only after this many bytes in one file, or before another request
    /// for the file, such as close.
    Coalesced(u32),
    /// Like `Background`, and close waits until the data is on the server's disk. Until then the client keeps
    /// it for a replay.
    Committed,
    /// File data stays on the client until close or fsync, which replaces the file on the server in one
    /// atomic step.
    Replaced,
    /// Each change is sent, and its call waits for the reply.
    EachCall,
}

/// The prefetching beyond the requested data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// Whole directories, whole small files, and read-ahead of blocks for sequential readers.
    Blocks,
    /// Whole blocks around the requested data, and nothing before a request.
    OnDemand,
    /// Whole directories, and at open the whole file, as a private copy.
    Whole,
    /// Nothing.
    Exact,
}

/// A cache mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// The name in options and messages.
    pub name: &'static str,
    /// The validation policy.
    pub validate: Validate,
    /// The publishing policy.
    pub publish: Publish,
    /// The fetch policy.
    pub fetch: Fetch,
}

/// The default window, as in the original Op.
const WINDOW: Duration = Duration::from_secs(1);
/// The default number of bytes to coalesce, as in the PODOS file system.
const COALESCED_BYTES: u32 = 1024;
/// The maximal number of bytes to coalesce. More would make close wait longer than the sending saves.
const COALESCED_BYTES_MAX: u32 = 16 * 1024 * 1024;

const fn row(name: &'static str, validate: Validate, publish: Publish, fetch: Fetch) -> Mode {
    Mode { name, validate, publish, fetch }
}

/// All modes; the first one is the default.
pub const MODES: [Mode; 7] = [
    row("lease", Validate::Lease, Publish::Background, Fetch::Blocks),
    Mode::WINDOW,
    row("session", Validate::AtOpen(WINDOW), Publish::Replaced, Fetch::Whole),
    row("lazy", Validate::Window(WINDOW), Publish::Coalesced(COALESCED_BYTES), Fetch::Blocks),
    row("commit", Validate::Window(WINDOW), Publish::Committed, Fetch::Blocks),
    row("direct", Validate::Lease, Publish::EachCall, Fetch::Exact),
    Mode::STRICT,
];

impl Publish {
    /// Returns true if `write` returns before the server has the data.
    pub fn is_write_back(self) -> bool {
        match self {
            Publish::Background | Publish::Coalesced(_) | Publish::Committed | Publish::Replaced => true,
            Publish::EachCall => false,
        }
    }

    /// Returns the number of bytes of one file that are coalesced before they are sent; 0 for none.
    pub fn coalesced_bytes(self) -> u32 {
        match self {
            Publish::Coalesced(bytes) => bytes,
            Publish::Background | Publish::Committed | Publish::Replaced | Publish::EachCall => 0,
        }
    }

    /// Returns true if close waits for the server's disk.
    pub fn is_committed(self) -> bool {
        match self {
            Publish::Committed => true,
            Publish::Background | Publish::Coalesced(_) | Publish::Replaced | Publish::EachCall => false,
        }
    }
}

impl Fetch {
    /// Returns true if data is cached after it was read or written.
    pub fn is_cached(self) -> bool {
        match self {
            Fetch::Blocks | Fetch::OnDemand | Fetch::Whole => true,
            Fetch::Exact => false,
        }
    }

    /// Returns true if each open file has a private copy.
    pub fn has_private_copies(self) -> bool {
        match self {
            Fetch::Whole => true,
            Fetch::Blocks | Fetch::OnDemand | Fetch::Exact => false,
        }
    }

    /// Returns true if directories and file contents are prefetched.
    pub fn prefetches(self) -> bool {
        match self {
            Fetch::Blocks | Fetch::Whole => true,
            Fetch::OnDemand | Fetch::Exact => false,
        }
    }

    /// Returns the same policy without prefetching.
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
    /// Mode `strict`: each call asks the server, and nothing is kept.
    pub const STRICT: Mode = row("strict", Validate::EachCall, Publish::EachCall, Fetch::Exact);

    /// Mode `window`: what was fetched is valid for a second.
    pub const WINDOW: Mode = row("window", Validate::Window(WINDOW), Publish::Background, Fetch::Blocks);

    /// Returns the window of validity after a request; zero if the mode has none.
    pub fn window(&self) -> Duration {
        match self.validate {
            Validate::Window(window) | Validate::AtOpen(window) => window,
            Validate::Lease | Validate::EachCall => Duration::ZERO,
        }
    }

    /// Returns true if each open validates cached data of any age.
    pub fn validates_at_open(&self) -> bool {
        match self.validate {
            Validate::AtOpen(_) | Validate::EachCall => true,
            Validate::Lease | Validate::Window(_) => false,
        }
    }

    /// Returns true if the mode uses leases.
    pub fn takes_leases(&self) -> bool {
        match self.validate {
            Validate::Lease => true,
            Validate::Window(_) | Validate::AtOpen(_) | Validate::EachCall => false,
        }
    }

    /// Returns true if the kernel may cache listings until they are invalidated.
    pub fn kernel_caches_listings(&self) -> bool {
        self.takes_leases() && self.fetch.is_cached()
    }

    /// Returns true if an exclusive mount may execute changes before the server does.
    pub fn allows_optimism(&self) -> bool {
        self.takes_leases() && self.publish.is_write_back()
    }

    /// Returns the time for which unleased prefetched data is expected to be valid.
    pub fn prefetch_window(&self) -> Duration {
        match self.validate {
            Validate::Window(window) | Validate::AtOpen(window) => window,
            Validate::Lease | Validate::EachCall => WINDOW,
        }
    }

    /// Parses `lease`, `window`, `window=500ms`, `window=2s`, `session`, `lazy`, `lazy=4k`, `commit`,
    /// `direct`, `strict`.
    ///
    /// # Errors
    /// Fails with a message for the user if the mode or its value is unknown.
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
