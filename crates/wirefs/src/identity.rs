//! `wirefs identity`: this user's key, as a server's authorized-keys file takes it.

use anyhow::Result;
use wirefs_carrier::tls::Identity;

use crate::places;
use crate::terminal::say;

/// Prints the line, and makes the key when there is none.
pub(crate) fn run() -> Result<()> {
    let identity = Identity::open(&places::config_dir()?)?;
    say!("{}", identity.line());
    Ok(())
}
