//! Keeps blocks in echo packets for a while, then reads and compares all of them. Also measures the CPU time
//! per packet in alternation with a bare loop that only swaps type and checksum.
//!
//! `cargo run --release -p wirefs-pingfs --example alive [host] [blocks] [seconds] [copies | K+M]`

use std::error::Error;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use wirefs_blocks::id::{BlockId, WriterId};
use wirefs_blocks::store::{BlockStore, Wanted};
use wirefs_echo::Redundancy;
use wirefs_pingfs::{EchoOptions, EchoStore};
use wirefs_raw::charge_bytes;
use wirefs_virtual::Dice;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Blocks read at once.
const READ_BATCH: usize = 4_096;
/// Blocks stored at once.
const KEEP_BATCH: usize = 256;

fn content(counter: u64, bytes: usize) -> Bytes {
    Dice::new(counter).bytes(bytes).into()
}

fn redundancy(text: &str) -> Outcome<Redundancy> {
    Ok(match text.split_once('+') {
        Some((pieces, extra)) => Redundancy::Code { pieces: pieces.parse()?, extra: extra.parse()? },
        None => Redundancy::Copies(text.parse()?),
    })
}

/// Reads all blocks. Returns how many are right, wrong, and lost.
fn read_all(store: &EchoStore, ids: &[BlockId], bytes: usize) -> (usize, usize, usize) {
    let (mut right, mut wrong, mut lost) = (0, 0, 0);
    for batch in ids.chunks(READ_BATCH) {
        store.retrieve(&Wanted::of(batch.iter().copied()), &mut |id, block| match block {
            Ok(block) if block == content(id.counter(), bytes) => right += 1,
            Ok(_) => wrong += 1,
            Err(_) => lost += 1,
        });
    }
    (right, wrong, lost)
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = |index: usize, default: &str| arguments.get(index).map_or(default.to_owned(), String::clone);
    let host: IpAddr = word(0, "127.0.0.1").parse()?;
    let blocks: u64 = word(1, "100000").parse()?;
    let span = Duration::from_secs(word(2, "60").parse()?);
    let mut options = EchoOptions::new(vec![(host, 0).into()]);
    options.redundancy = redundancy(&word(3, "1"))?;
    options.parked_packets = Some(blocks * 4);
    options.buffer_bytes = usize::try_from(blocks * 4)? * charge_bytes(options.payload_bytes_max);
    let store = EchoStore::open(options)?;
    let bytes = store.payload_bytes();
    let ids: Vec<BlockId> = (1..=blocks).filter_map(|counter| BlockId::new(counter, WriterId(0))).collect();
    let begun = Instant::now();
    for batch in ids.chunks(KEEP_BATCH) {
        let new: Vec<_> = batch.iter().map(|&id| (id, content(id.counter(), bytes))).collect();
        store.register(&new)?;
    }
    println!("{blocks} blocks of {bytes} bytes kept in {:.1?}", begun.elapsed());
    let (begun, before) = (Instant::now(), store.status());
    std::thread::sleep(span);
    let after = store.status();
    println!(
        "alive for {:.1?}: {} packets sent on, {} blocks reported lost, {} packets dropped by the kernel; \
         memory {:?}",
        begun.elapsed(),
        after.counters.circulated - before.counters.circulated,
        after.blocks_lost,
        after.hosts.iter().map(|host| host.dropped).sum::<u32>(),
        after.memory,
    );
    let begun = Instant::now();
    let (right, wrong, lost) = read_all(&store, &ids, bytes);
    println!("read in {:.1?}: {right} right, {wrong} wrong, {lost} lost", begun.elapsed());
    Ok(())
}
