//! Keeps files in pings on a lossy emulated line, reads them continuously, and reports the losses.
//!
//! `cargo build --release -p wirefs -p wirefs-pingfs --examples --bins`, then as root
//! `target/release/examples/endure SECONDS LOSS [option of wirefs echo …]`, where LOSS is the loss of pings
//! in percent, half of it each way. The round trip of the line is 85 ms.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use wirefs_lab::{Host, Lab, LinkProfile, Probability};

type Outcome<T> = Result<T, Box<dyn Error>>;

const RTT: Duration = Duration::from_millis(85);
const FILES: usize = 5;
const FILE_BYTES: usize = 2_000;
/// Pause between two rounds of reads.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs a program to its end and returns its output.
fn output_of(host: &Host, program: &Path, words: &[&str]) -> Outcome<String> {
    let mut command: Command = host.command(program.to_string_lossy().as_ref());
    let output = command.args(words).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok(text)
    } else {
        Err(format!("{command:?}: {} {}", output.status, String::from_utf8_lossy(&output.stderr)).into())
    }
}

fn content(number: usize) -> Vec<u8> {
    (0..FILE_BYTES).map(|place| (number * 31 + place * 7 + place / 256) as u8).collect()
}

/// Reads all files repeatedly. Returns the number of rounds, and of wrong or unreadable bytes.
fn watch(dir: &Path, time: Duration) -> (usize, usize) {
    let (begun, mut rounds, mut lost) = (Instant::now(), 0, 0);
    while begun.elapsed() < time {
        for number in 0..FILES {
            let expected = content(number);
            let found = std::fs::read(dir.join(format!("file{number}"))).unwrap_or_default();
            let right = expected.iter().zip(&found).filter(|(expected, found)| expected == found).count();
            lost += FILE_BYTES - right + found.len().saturating_sub(FILE_BYTES);
        }
        rounds += 1;
        std::thread::sleep(PAUSE);
    }
    (rounds, lost)
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| arguments.get(index).ok_or("usage: endure SECONDS LOSS [option …]");
    let (seconds, percent): (u64, f64) = (number(0)?.parse()?, number(1)?.parse()?);
    let options: Vec<&str> = arguments.iter().skip(2).map(String::as_str).collect();
    let here = std::env::current_exe()?;
    let wirefs = here.parent().ok_or("the program has no directory")?.with_file_name("wirefs");
    let dir = std::env::temp_dir().join(format!("wirefs-endure-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let mountpoint = dir.to_string_lossy().into_owned();

    let lab = Lab::new("endure")?;
    let (near, far) = (lab.host("near")?, lab.host("far")?);
    let each_way = Probability::new(1.0 - (1.0 - percent / 100.0).sqrt()).ok_or("no such loss")?;
    let profile = LinkProfile::rtt(RTT).with(|lane| lane.loss = each_way);
    let link = lab.link(&near, &far, profile)?;
    let address = link.address_b().to_string();
    let mut words = vec!["echo", &mountpoint, "--host", &address, "--discard"];
    words.extend(&options);
    output_of(&near, &wirefs, &words)?;
    let watched = near.run(|| {
        for number in 0..FILES {
            std::fs::write(dir.join(format!("file{number}")), content(number))?;
        }
        Ok::<_, std::io::Error>(watch(&dir, Duration::from_secs(seconds)))
    })?;
    let status = output_of(&near, &wirefs, &["echo", "status", &mountpoint]);
    output_of(&near, &wirefs, &["umount", &mountpoint])?;
    std::fs::remove_dir(&dir)?;
    let (rounds, lost) = watched?;
    let status = status?;
    let of_status =
        |word: &str| status.lines().find(|line| line.starts_with(word)).unwrap_or_default().to_owned();
    println!(
        "{seconds} s at {percent} % with {}: {FILES} files of {FILE_BYTES} bytes read {rounds} times, {lost} bytes lost\n  {}\n  {}",
        options.join(" "),
        of_status("lost"),
        of_status("blocks")
    );
    if lost == 0 && of_status("lost").contains(" 0 blocks") {
        Ok(())
    } else {
        Err("something was lost".into())
    }
}
