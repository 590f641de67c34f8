//! The arguments of `wirefs set`, `pause` and `resume`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde::{Deserialize, Serialize};

use super::parse_size;

const SET_EXAMPLES: &str = "\
Examples:
  wirefs set ~/photos up=500K down=2M
  wirefs set ~/photos up=off

The limits hold for all connections of the mount together, and until it is
unmounted. Trees in the mount's own process, such as sftp://, have no limits.";

#[derive(Debug, Args)]
#[command(after_help = SET_EXAMPLES)]
pub(crate) struct Set {
    /// The mountpoint
    #[arg(value_name = "MOUNTPOINT", value_hint = ValueHint::DirPath)]
    pub(crate) mountpoint: PathBuf,
    /// up=RATE or down=RATE, in bytes per second such as 500K or 2M; `off`: no limit
    #[arg(value_name = "NAME=RATE", required = true, value_parser = parse_limit)]
    pub(crate) limits: Vec<LimitChange>,
}

#[derive(Debug, Args)]
pub(crate) struct AtMount {
    /// The mountpoint
    #[arg(value_name = "MOUNTPOINT", value_hint = ValueHint::DirPath)]
    pub(crate) mountpoint: PathBuf,
}

/// A change of a mount's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub(crate) enum LimitChange {
    /// The rate of sending.
    Up {
        /// In bytes per second; none: unlimited.
        rate: Option<u64>,
    },
    /// The rate of receiving.
    Down {
        /// As above.
        rate: Option<u64>,
    },
    /// Close the connections, and make none until [`LimitChange::Resume`].
    Pause,
    /// Connect again.
    Resume,
}

/// Parses a rate in bytes per second: as [`parse_size`], but at least 1.
pub(crate) fn parse_rate(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a rate; write bytes per second, such as 500K or 2M");
    parse_size(text).ok().filter(|rate| *rate > 0).map(|rate| rate as u64).ok_or_else(wrong)
}

/// Parses `up=RATE` or `down=RATE`.
fn parse_limit(text: &str) -> Result<LimitChange, String> {
    let wrong = || format!("`{text}` is not a limit; write up=RATE or down=RATE, such as up=2M or down=off");
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let rate = if value == "off" { None } else { Some(parse_rate(value)?) };
    match name {
        "up" => Ok(LimitChange::Up { rate }),
        "down" => Ok(LimitChange::Down { rate }),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed() {
        assert_eq!(parse_limit("up=2M"), Ok(LimitChange::Up { rate: Some(2 << 20) }));
        assert_eq!(parse_limit("down=off"), Ok(LimitChange::Down { rate: None }));
        for text in ["up", "up=", "up=0", "up=fast", "both=1M"] {
            assert!(parse_limit(text).is_err(), "{text}");
        }
    }
}
