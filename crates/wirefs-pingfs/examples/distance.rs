//! Mounts over an emulated line and measures uncached reads of small files.
//!
//! `cargo build --release -p wirefs -p wirefs-pingfs --examples`, then as root
//! `target/release/examples/distance [round trip in ms] [reads] [option of wirefs echo …]`

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use wirefs_lab::{Host, Lab, LinkProfile};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Runs a program to its end.
fn run(mut command: Command) -> Outcome<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

fn with(host: &Host, program: &Path, words: &[&str]) -> Command {
    let mut command = host.command(program.to_string_lossy().as_ref());
    command.args(words);
    command
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rtt_ms: u64 = arguments.first().map_or(Ok(4), |word| word.parse())?;
    let reads = arguments.get(1).map_or("300", String::as_str);
    let options: Vec<&str> = arguments.iter().skip(2).map(String::as_str).collect();
    let here = std::env::current_exe()?;
    let examples = here.parent().ok_or("the program has no directory")?;
    let (reader, wirefs) = (examples.join("read_file"), examples.with_file_name("wirefs"));
    let dir = std::env::temp_dir().join(format!("wirefs-distance-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let mountpoint = dir.to_string_lossy().into_owned();

    let lab = Lab::new("distance")?;
    let (near, far) = (lab.host("near")?, lab.host("far")?);
    let link = lab.link(&near, &far, LinkProfile::rtt(Duration::from_millis(rtt_ms)))?;
    let address = link.address_b().to_string();
    let mut words = vec!["echo", &mountpoint, "--host", &address, "--discard"];
    words.extend(options);
    run(with(&near, &wirefs, &words))?;
    let pause = (rtt_ms * 2_000).to_string();
    let outcome = run(with(&near, &reader, &[&mountpoint, "16", &pause, "prepare"]))
        .and_then(|()| run(with(&near, &reader, &[&mountpoint, reads, &pause])))
        .and_then(|()| run(with(&near, &wirefs, &["echo", "status", &mountpoint])));
    run(with(&near, &wirefs, &["umount", &mountpoint]))?;
    std::fs::remove_dir(&dir)?;
    outcome
}
