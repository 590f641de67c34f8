//! The value of `--mode`, with the names that shells complete.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use wirefs_cache::Mode;

/// The names of the modes, and their meaning.
const MODES: [(&str, &str); 7] = [
    ("lease", "use cached data without asking; the server recalls it before it changes"),
    ("window", "cached data is at most 1s old, or SPAN with window=SPAN"),
    ("session", "whole files: fetched at open, replaced at close"),
    ("lazy", "as window; data is sent in pieces of 1k, or SIZE with lazy=SIZE"),
    ("commit", "as window; close waits for the server's disk"),
    ("direct", "as lease for names; contents are never cached, and writes wait for the server"),
    ("strict", "nothing is cached; each call asks the server"),
];

/// Parses a mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModeParser;

impl TypedValueParser for ModeParser {
    type Value = Mode;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Mode, clap::Error> {
        let name = argument.map(ToString::to_string).unwrap_or_default();
        Mode::parse(&value.to_string_lossy()).map_err(|wrong| {
            let text =
                format!("invalid value for '{name}': {wrong}\n\nFor more information, try '--help'.\n");
            clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(MODES.iter().map(|(name, help)| PossibleValue::new(*name).help(*help))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_completed_name_is_a_mode() {
        for (name, _) in MODES {
            assert!(Mode::parse(name).is_ok(), "{name}");
        }
    }
}
