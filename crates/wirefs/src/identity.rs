//! `wirefs identity`: prints this user's key in the format of authorized-keys files.

use anyhow::Result;
use wirefs_carrier::tls::Identity;

use crate::terminal::say;
use crate::user_dirs;

/// Prints the line; creates the key if there is none.
pub(crate) fn run() -> Result<()> {
    let identity = Identity::open(&user_dirs::config_dir()?)?;
    say!("{}", identity.line());
    Ok(())
}
