//! `wirefs-lab`: hosts, an emulated link between them, and measurements, from the command line.

mod command;

fn main() -> std::process::ExitCode {
    command::run()
}
