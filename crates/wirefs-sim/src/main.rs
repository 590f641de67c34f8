//! `wirefs-sim`: executes runs one after the other until one fails, for `make sim`.

use std::process::ExitCode;
use wirefs_sim::{EventCounts, Scene, run, tell};

/// Parses the kind of runs, the first seed and the number of runs.
fn parse() -> Result<(Scene, u64, u64), String> {
    let mut arguments = std::env::args().skip(1);
    let (mut scene, mut from, mut seeds) = (Scene::Beside, 0, 2000);
    while let Some(argument) = arguments.next() {
        let slot = match argument.as_str() {
            "--from" => &mut from,
            "--seeds" => &mut seeds,
            "--ahead" => {
                scene = Scene::Ahead;
                continue;
            }
            "--rivals" => {
                scene = Scene::Rivals;
                continue;
            }
            other => return Err(format!("`{other}` is none of --ahead, --rivals, --from and --seeds")),
        };
        let value = arguments.next().unwrap_or_default();
        *slot = value.parse().map_err(|_| format!("{argument} takes a number, not `{value}`"))?;
    }
    Ok((scene, from, seeds))
}

fn main() -> ExitCode {
    let (scene, from, seeds) = match parse() {
        Ok(parsed) => parsed,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::from(2);
        }
    };
    let mut total = EventCounts::default();
    for seed in from..from.saturating_add(seeds) {
        match run(scene, seed, None) {
            Ok(record) => total += record,
            Err(failure) => {
                eprintln!("{failure}");
                return ExitCode::FAILURE;
            }
        }
        if seeds == 1 {
            tell(scene, seed, None).iter().for_each(|line| println!("{line}"));
        } else if (seed - from + 1).is_multiple_of((seeds / 20).max(1)) {
            println!("{}", total.summary(scene));
        }
    }
    println!("no violation in {seeds} runs from {from}: {}", total.summary(scene));
    ExitCode::SUCCESS
}
