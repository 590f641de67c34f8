//! `wirefs-figures fetch`: the source's table.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::{env, thread};

use anyhow::Context as _;
use clap::Args;
use wirefs_figures::fetch::{LOADS, Peer, Plan, RUNS_MAX, SIZES, to_section};
use wirefs_lab::bench::{Markers, Page};
use wirefs_lab::{EndSignals, units};

use wirefs_lab::bench::{commit, machine};

/// The lines around the part of the page that this subcommand writes.
const MARKERS: Markers = Markers {
    begin: "<!-- fetch: begin (written by `wirefs-figures fetch`; do not edit by hand) -->",
    end: "<!-- fetch: end -->",
};

/// What one must know to read those of NFS.
const NFS: &str = " NFSv4 is nfs-ganesha and libnfs, both in user space: a program that fetches one file, less the median of three with an empty \
                   one, so without `open`, `close` and what a mount costs.";

#[derive(Args)]
pub(crate) struct FetchArguments {
    /// The rate of each card.
    #[arg(long, value_name = "RATE", default_value = "10mbit", value_parser = units::rate_bits)]
    rate: u64,
    /// The round-trip time.
    #[arg(long, value_name = "TIME", default_value = "400us", value_parser = units::duration)]
    rtt: Duration,
    /// How often each is fetched; the tables show medians.
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    runs: usize,
    /// Two sizes and two loads, once: a first look.
    #[arg(long)]
    short: bool,
    /// The wirefs program; without it, the one beside this program.
    #[arg(long, value_name = "PROGRAM")]
    wirefs: Option<PathBuf>,
    /// Writes the tables into this page, between its markers, instead of to standard output; those of other rates stay.
    #[arg(long, value_name = "PAGE")]
    out: Option<PathBuf>,
}

/// Measures and reports.
pub(crate) fn run(arguments: &FetchArguments) -> anyhow::Result<ExitCode> {
    anyhow::ensure!((1..=RUNS_MAX).contains(&arguments.runs), "--runs is a number from 1 to {RUNS_MAX}");
    anyhow::ensure!(arguments.rate > 0, "--rate is what each card carries, and more than nothing");
    let signals = EndSignals::block().context("block signals")?;
    let beside = env::current_exe().context("find this program")?.with_file_name("wirefs");
    let is_here = |peer: &Peer| peer.programs().iter().all(|(program, _)| find(program));
    let (peers, absent): (Vec<Peer>, Vec<Peer>) = Peer::ALL.into_iter().partition(is_here);
    absent.iter().for_each(|peer| eprintln!("{}", left_out(*peer)));
    let plan = Plan {
        rate_bits: arguments.rate,
        rtt: arguments.rtt,
        runs: if arguments.short { 1 } else { arguments.runs },
        loads: if arguments.short { vec![0, 20] } else { LOADS.to_vec() },
        sizes: if arguments.short { 2 } else { SIZES.len() },
        peers,
        absent,
        wirefs: arguments.wirefs.clone().unwrap_or(beside),
        scratch: env::temp_dir().join(format!("wirefs-figures-fetch-{}", std::process::id())),
        stop: Arc::default(),
    };
    let stop = Arc::clone(&plan.stop);
    thread::spawn(move || signals.wait().map(|_| stop.store(true, Ordering::Relaxed)));
    let page = arguments.out.as_deref().map(|path| Page::open(path, MARKERS)).transpose()?;
    let samples = plan.run(&mut |line| eprintln!("{line}"))?;
    let section = to_section(&plan, &samples, &conditions(&plan));
    match page {
        Some(page) => page.write(&[section])?,
        None => println!("{section}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a program is in one of the directories of PATH.
pub(super) fn find(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// What is told of a peer whose programs are not here.
fn left_out(peer: Peer) -> String {
    format!("{} is not installed here, so it is left out; on Debian: {}", peer.name(), peer.remedy())
}

/// What one must know to read the figures.
fn conditions(plan: &Plan) -> String {
    format!(
        "Commit {}. {}. Medians of {} interleaved fetches, each from a mount made anew, RTT {} µs, MTU 1500, reads of 1 KiB. The load is \
         datagrams from the server to the client, on each card. The source's figures are those of its text (Pentium 133, Ethernet of 10 \
         Mbit/s, NFS with blocks of 1 K); its curves have no numbers.{}{}",
        commit(),
        machine(),
        plan.runs,
        plan.rtt.as_micros(),
        if plan.peers.contains(&Peer::Nfs) { NFS } else { "" },
        plan.absent.iter().map(|peer| format!(" {}.", left_out(*peer))).collect::<String>(),
    )
}
