//! `wirefs-sim`: many runs, one after the other, until one goes wrong: what `make sim` starts.

use std::process::ExitCode;
use wirefs_sim::{Record, run, tell};

/// The first seed and how many.
fn told() -> Result<(u64, u64), String> {
    let mut arguments = std::env::args().skip(1);
    let (mut from, mut seeds) = (0, 2000);
    while let Some(argument) = arguments.next() {
        let slot = match argument.as_str() {
            "--from" => &mut from,
            "--seeds" => &mut seeds,
            other => return Err(format!("`{other}` is none of --from and --seeds")),
        };
        let value = arguments.next().unwrap_or_default();
        *slot = value.parse().map_err(|_| format!("{argument} takes a number, not `{value}`"))?;
    }
    Ok((from, seeds))
}

fn main() -> ExitCode {
    let (from, seeds) = match told() {
        Ok(told) => told,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::from(2);
        }
    };
    let mut total = Record::default();
    for seed in from..from.saturating_add(seeds) {
        match run(seed, None) {
            Ok(record) => total += record,
            Err(failure) => {
                eprintln!("{failure}");
                return ExitCode::FAILURE;
            }
        }
        if seeds == 1 {
            tell(seed, None).iter().for_each(|line| println!("{line}"));
        } else if (seed - from + 1).is_multiple_of((seeds / 20).max(1)) {
            println!("{total}");
        }
    }
    println!("nothing wrong in {seeds} runs from {from}: {total}");
    ExitCode::SUCCESS
}
