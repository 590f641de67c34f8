//! `wirefs-figures fetch`: the evaluation of the PODOS File System.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::{env, thread};

use anyhow::Context as _;
use clap::Args;
use wirefs_figures::fetch::{FetchPeer, FetchPlan, LOADS, RUNS_MAX, SIZES, to_section};
use wirefs_lab::bench::{PageMarkers, ReportPage};
use wirefs_lab::{EndSignals, units};

use wirefs_lab::bench::{commit, machine};

/// The lines around the part of the page that this subcommand writes.
const MARKERS: PageMarkers = PageMarkers {
    begin: "<!-- fetch: begin (written by `wirefs-figures fetch`; do not edit by hand) -->",
    end: "<!-- fetch: end -->",
};

/// Added to the conditions where NFS is measured.
const NFS_CONDITIONS: &str = " NFSv4 is nfs-ganesha and libnfs, both in user space: a program that fetches one file, less the median of three with an empty \
                   one, so without `open`, `close` and the mount.";

#[derive(Args)]
pub(crate) struct FetchArguments {
    /// The rate of each card.
    #[arg(long, value_name = "RATE", default_value = "10mbit", value_parser = units::rate_bits)]
    rate: u64,
    /// The round-trip time.
    #[arg(long, value_name = "TIME", default_value = "400us", value_parser = units::duration)]
    rtt: Duration,
    /// Number of fetches per cell; the tables show medians.
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    runs: usize,
    /// Quick run: two sizes and two loads, once each.
    #[arg(long)]
    short: bool,
    /// The wirefs program; by default the one in the directory of this program.
    #[arg(long, value_name = "PROGRAM")]
    wirefs: Option<PathBuf>,
    /// Writes the tables between the markers of this page instead of to standard output. Tables of other rates stay.
    #[arg(long, value_name = "PAGE")]
    out: Option<PathBuf>,
}

/// Runs the measurements and reports them.
pub(crate) fn run(arguments: &FetchArguments) -> anyhow::Result<ExitCode> {
    anyhow::ensure!((1..=RUNS_MAX).contains(&arguments.runs), "--runs is a number from 1 to {RUNS_MAX}");
    anyhow::ensure!(arguments.rate > 0, "--rate must be positive");
    let signals = EndSignals::block().context("block signals")?;
    let default_wirefs = env::current_exe().context("find this program")?.with_file_name("wirefs");
    let is_installed = |peer: &FetchPeer| peer.programs().iter().all(|(program, _)| find(program));
    let (peers, missing): (Vec<FetchPeer>, Vec<FetchPeer>) =
        FetchPeer::ALL.into_iter().partition(is_installed);
    missing.iter().for_each(|peer| eprintln!("{}", not_installed(*peer)));
    let plan = FetchPlan {
        rate_bits: arguments.rate,
        rtt: arguments.rtt,
        runs: if arguments.short { 1 } else { arguments.runs },
        loads: if arguments.short { vec![0, 20] } else { LOADS.to_vec() },
        sizes: if arguments.short { 2 } else { SIZES.len() },
        peers,
        missing,
        wirefs: arguments.wirefs.clone().unwrap_or(default_wirefs),
        scratch: env::temp_dir().join(format!("wirefs-figures-fetch-{}", std::process::id())),
        stop: Arc::default(),
    };
    let stop = Arc::clone(&plan.stop);
    thread::spawn(move || signals.wait().map(|_| stop.store(true, Ordering::Relaxed)));
    let page = arguments.out.as_deref().map(|path| ReportPage::open(path, MARKERS)).transpose()?;
    let samples = plan.run(&mut |line| eprintln!("{line}"))?;
    let section = to_section(&plan, &samples, &conditions(&plan));
    match page {
        Some(page) => page.write(&[section])?,
        None => println!("{section}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns whether a program is in one of the directories of PATH.
pub(super) fn find(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Returns the message about a peer whose programs are not installed.
fn not_installed(peer: FetchPeer) -> String {
    format!("{} is not installed here, so it is left out; on Debian: {}", peer.name(), peer.install_command())
}

/// Returns the conditions of the measurement, for the head of the section.
fn conditions(plan: &FetchPlan) -> String {
    format!(
        "Commit {}. {}. Medians of {} interleaved fetches, each from a mount made anew, RTT {} µs, MTU 1500, reads of 1 KiB. The load is \
         datagrams from the server to the client, on each card. The source's figures are those of its text (Pentium 133, Ethernet of 10 \
         Mbit/s, NFS with blocks of 1 K); its curves have no numbers.{}{}",
        commit(),
        machine(),
        plan.runs,
        plan.rtt.as_micros(),
        if plan.peers.contains(&FetchPeer::Nfs) { NFS_CONDITIONS } else { "" },
        plan.missing.iter().map(|peer| format!(" {}.", not_installed(*peer))).collect::<String>(),
    )
}
