//! Reads small files one after the other (open, read, close) with pauses, and prints the times.
//!
//! `cargo run --release -p wirefs-pingfs --example read_file DIR [reads] [pause in microseconds] [prepare]`
//!
//! With `prepare` it writes the files first: 16 of 100 bytes. The pause should be longer than a round trip,
//! so that the blocks of one read are no longer buffered for the next.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

const FILES: usize = 16;
const FILE_BYTES: usize = 100;

fn file(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("small{}", number % FILES))
}

fn content(number: usize) -> Vec<u8> {
    (0..FILE_BYTES).map(|place| ((number % FILES) * 7 + place) as u8).collect()
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dir = PathBuf::from(arguments.first().ok_or("name a directory")?);
    let number = |index: usize, default: u64| arguments.get(index).map_or(Ok(default), |word| word.parse());
    let (reads, pause) = (number(1, 1_000)? as usize, Duration::from_micros(number(2, 0)?));
    if arguments.get(3).is_some_and(|word| word == "prepare") {
        std::fs::create_dir_all(&dir)?;
        for number in 0..FILES {
            std::fs::write(file(&dir, number), content(number))?;
        }
    }
    let (mut times, mut wrong) = (Vec::with_capacity(reads), 0);
    for nth in 0..reads {
        // A different file each time, in an irregular order, and at varying phases of a round trip.
        let number = nth * 7 + nth / FILES;
        std::thread::sleep(pause + pause * ((nth * 37 % 101) as u32) / 101);
        let begun = Instant::now();
        let bytes = std::fs::read(file(&dir, number))?;
        times.push(begun.elapsed());
        wrong += usize::from(bytes != content(number));
    }
    times.sort_unstable();
    let at = |hundredths: usize| times.get(times.len() * hundredths / 100).copied().unwrap_or_default();
    let mean = times.iter().sum::<Duration>().as_secs_f64() / times.len().max(1) as f64;
    let squares = times.iter().map(|time| (time.as_secs_f64() - mean).powi(2)).sum::<f64>();
    let deviation = (squares / times.len().max(1) as f64).sqrt();
    println!(
        "{reads} reads: mean {:.2?}, median {:.2?}, standard deviation {:.2?}, 5 % {:.2?}, 95 % {:.2?}; {wrong} wrong",
        Duration::from_secs_f64(mean),
        at(50),
        Duration::from_secs_f64(deviation),
        at(5),
        at(95)
    );
    Ok(())
}
