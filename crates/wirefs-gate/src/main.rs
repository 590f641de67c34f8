//! `wirefs-gate`: serves a directory, or any source that wirefs mounts, to clients of another protocol.
//!
//! *Holds*: an error names the problem and the next step; a client that breaks its protocol loses its own connection
//! and nothing else; a network address that others reach is served only on demand, since 9P protects nothing.
//!
//! *Never*: decisions about files, caching or order, which are the client core's; the kernel's FUSE.
//!
//! *Proved by*: `tests/suite`, where clients of other projects (diod's) and our own speak with the program.

mod arguments;
mod nine;

use anyhow::{Context, Result};
use arguments::Arguments;
use clap::Parser;
use std::io::Write;
use std::process::ExitCode;
use wirefs_gate::{OpenSource, Signals};

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _unheard = writeln!(std::io::stderr(), "wirefs-gate: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let signals = Signals::take().context("cannot take over the signals")?;
    let listeners = arguments
        .nine
        .iter()
        .map(|address| address.bind(arguments.unprotected))
        .collect::<Result<Vec<_>>>()?;
    let source = OpenSource::open(&arguments.source)?;
    let users = source.users();
    let mut announced = Vec::new();
    for listener in listeners {
        announced.push(listener.address().to_owned());
        listener.start(source.files(), users).context("cannot start a thread")?;
    }
    let source_name = arguments.source.source.to_string_lossy();
    let mut out = std::io::stdout();
    for address in announced {
        let _unheard = writeln!(out, "serving {source_name} over 9P on {address}");
    }
    if users.uid == 0 {
        let _unheard = writeln!(out, "running as root: clients get root's rights below this source");
    }
    let _unheard = out.flush();
    signals.wait().context("cannot wait for signals")?;
    arguments.nine.iter().for_each(nine::NineAddress::remove);
    source.end();
    Ok(())
}
