//! The command: arguments, user files, messages.
//!
//! *Holds*: an error names the problem and the next step; standard output has the requested result and nothing else.
//!
//! *Never*: protocol, caching, decisions about files.
//!
//! *Proved by*: `tests/suite`, which runs the program as a user does; one of its tests runs the commands of the README.

mod activity;
mod arguments;
mod blocks;
mod checkpoint;
mod control;
mod doctor;
mod echo;
mod failure;
mod find_servers;
mod identity;
mod keys;
mod limits;
mod manual;
mod metrics;
mod mount;
mod mountpoint;
mod nine;
mod node;
mod progress;
mod quarantine;
mod reconnect;
mod recover;
mod serve;
mod sftp;
mod status;
mod sync;
mod sys;
mod terminal;
mod top;
mod umount;
mod unsent;
mod user_dirs;
mod why;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use arguments::{Arguments, Command};
use clap::Parser;

/// The name in `ps` and `top`.
const PROCESS_NAME: &std::ffi::CStr = c"wirefs";

fn main() -> ExitCode {
    // A background process is started from /proc/self/exe, and would be called so.
    let _unnamed = rustix::thread::set_name(PROCESS_NAME);
    if let Some(socket) = reconnect::prompts_socket() {
        return reconnect::pass_on(&socket);
    }
    let words = arguments::with_command(std::env::args_os());
    let arguments = Arguments::parse_from(&words);
    run(&arguments.command, &words).unwrap_or_else(|error| {
        failure::print_error(&error);
        ExitCode::FAILURE
    })
}

fn run(command: &Command, words: &[OsString]) -> Result<ExitCode> {
    match command {
        Command::Mount(arguments) => return mount::run(arguments, words),
        Command::Doctor(arguments) => return doctor::run(arguments),
        Command::Recover(arguments) => return recover::run(arguments),
        Command::Echo(arguments) => return echo::run(arguments, words),
        Command::Node(arguments) => return node::run(arguments, words),
        Command::Reconnect(arguments) => return reconnect::run(arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::FindServers(arguments) => find_servers::run(arguments),
        Command::Umount(arguments) => umount::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Top(arguments) => top::run(arguments),
        Command::Why(arguments) => why::run(arguments),
        Command::Sync(arguments) => sync::run(arguments),
        Command::Set(arguments) => limits::set(arguments),
        Command::Pause(arguments) => limits::pause(arguments),
        Command::Resume(arguments) => limits::resume(arguments),
        Command::Checkpoint(arguments) => checkpoint::run(arguments),
        Command::Quarantine(arguments) => quarantine::run(arguments),
        Command::Allow(arguments) => keys::allow(arguments),
        Command::Keys(arguments) => keys::list(arguments),
        Command::Revoke(arguments) => keys::revoke(arguments),
        Command::Identity => identity::run(),
        Command::Completions { shell } => manual::completions(*shell),
        Command::Man { out } => manual::pages(out.as_deref()),
    }?;
    Ok(ExitCode::SUCCESS)
}
