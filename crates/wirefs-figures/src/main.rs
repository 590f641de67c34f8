//! `wirefs-figures`: measurements beside the figures of published papers, from the command line.

mod command;

fn main() -> std::process::ExitCode {
    command::run()
}
