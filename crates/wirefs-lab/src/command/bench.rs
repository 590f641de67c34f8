//! `wirefs-lab bench`: measures workloads on several file systems.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::{env, fs, thread};

use anyhow::Context as _;
use clap::Args;
use wirefs_lab::bench::{
    self, BenchPeer, BenchPlan, BenchSamples, PageMarkers, RUNS_MAX, ReportPage, StepOutcome,
};
use wirefs_lab::workload::{self, Scale, WorkPlace, Workload};
use wirefs_lab::{EndSignals, LinkOptions, units};

#[derive(Args)]
pub(crate) struct BenchArguments {
    /// Round-trip times, separated by commas; 0 is a plain veth pair.
    #[arg(long, value_name = "TIME,…", default_value = "0,10,85", value_delimiter = ',', value_parser = units::duration)]
    rtt: Vec<Duration>,
    /// Bits per second in each direction (100mbit).
    #[arg(long, value_name = "RATE", value_parser = units::rate_bits)]
    rate: Option<u64>,
    /// Fraction of lost frames (1% or 0.01).
    #[arg(long, value_name = "PART", value_parser = units::probability)]
    loss: Option<wirefs_lab::Probability>,
    /// Maximum TCP receive and send buffers on both hosts, instead of 32 MiB (256k).
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    buffers: Option<u64>,
    /// Workloads, separated by commas; default: all.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = parse_workload)]
    only: Vec<&'static Workload>,
    /// Number of runs; the table shows medians.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    runs: usize,
    /// Peers: local, bare (TCP), sshfs, wirefs, no-journal (wirefs --no-journal), one-connection (wirefs -o
    /// connections=1), sftp (wirefs over SFTP). local is always included.
    #[arg(long, value_name = "PEER,…", default_value = "local,bare,sshfs,wirefs,no-journal", value_delimiter = ',', value_parser = BenchPeer::parse)]
    peers: Vec<BenchPeer>,
    /// Quick run: a tenth of the work, without pauses.
    #[arg(long)]
    short: bool,
    /// Size of a large file (256m; 16m with --short).
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    bulk: Option<u64>,
    /// Time limit of a step; a slower step is stopped and reported as stopped.
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = units::duration)]
    limit: Duration,
    /// Idle time of the trees of a run before their mounts: for one minute after activity of server programs, exclusive
    /// creations wait for the server (S-51).
    #[arg(long, value_name = "TIME", default_value = "61s", value_parser = units::duration)]
    rest: Duration,
    /// The wirefs program; by default the one in the directory of this program.
    #[arg(long, value_name = "PROGRAM")]
    wirefs: Option<PathBuf>,
    /// Writes the tables between the markers of this page instead of to standard output. Tables of other round-trip
    /// times stay.
    #[arg(long, value_name = "PAGE", conflicts_with = "only")]
    out: Option<PathBuf>,
    /// Writes every run as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct WorkArguments {
    #[arg(value_parser = parse_workload)]
    workload: &'static Workload,
    step: String,
    tree: PathBuf,
    local: PathBuf,
    #[arg(long)]
    short: bool,
    #[arg(long)]
    bulk: Option<u64>,
}

/// Runs the benchmark and reports it; fails if a step failed.
pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<ExitCode> {
    anyhow::ensure!((1..=RUNS_MAX).contains(&arguments.runs), "--runs is a number from 1 to {RUNS_MAX}");
    let signals = EndSignals::block().context("block signals")?;
    let plan = plan(arguments)?;
    let stop = Arc::clone(&plan.stop);
    thread::spawn(move || signals.wait().map(|_| stop.store(true, Ordering::Relaxed)));
    let page = arguments.out.as_deref().map(|path| ReportPage::open(path, PageMarkers::BENCH)).transpose()?;
    let samples = plan.run(&mut |line| eprintln!("{line}"))?;
    if let Some(file) = &arguments.json {
        fs::write(file, bench::to_json(&samples)).with_context(|| format!("write {}", file.display()))?;
    }
    let sections = bench::to_markdown(&plan, &samples, &conditions(arguments, &plan));
    match page {
        Some(page) => page.write(&sections)?,
        None => sections.iter().for_each(|section| println!("{section}")),
    }
    Ok(ExitCode::from(u8::from(has_failures(&samples))))
}

/// Runs one step in this process.
pub(crate) fn work(arguments: &WorkArguments) -> anyhow::Result<ExitCode> {
    let workload = arguments.workload;
    let step =
        workload.step(&arguments.step).with_context(|| format!("{} has no such step", workload.name))?;
    let scale = Scale::of(arguments.short, arguments.bulk);
    let place = WorkPlace { tree: arguments.tree.clone(), local: arguments.local.clone(), scale };
    bench::work(step, &place)?;
    Ok(ExitCode::SUCCESS)
}

fn plan(arguments: &BenchArguments) -> anyhow::Result<BenchPlan> {
    let this = env::current_exe().context("find this program")?;
    let default_wirefs = this.with_file_name("wirefs");
    let link = LinkOptions { rate: arguments.rate, loss: arguments.loss, ..LinkOptions::default() };
    let listed = |peer: &BenchPeer| *peer == BenchPeer::Local || arguments.peers.contains(peer);
    let all = workload::ALL.to_vec();
    Ok(BenchPlan {
        rtts: arguments.rtt.clone(),
        profile: link.profile(),
        buffer_bytes: arguments.buffers,
        workloads: if arguments.only.is_empty() { all } else { arguments.only.clone() },
        peers: BenchPeer::ALL.into_iter().filter(listed).collect(),
        runs: arguments.runs,
        short: arguments.short,
        scale: Scale::of(arguments.short, arguments.bulk),
        pauses: !arguments.short,
        limit: arguments.limit,
        rest: arguments.rest,
        wirefs: arguments.wirefs.clone().unwrap_or(default_wirefs),
        wirefs_lab: this,
        scratch: env::temp_dir().join(format!("wirefs-lab-bench-{}", std::process::id())),
        stop: Arc::default(),
    })
}

fn parse_workload(name: &str) -> Result<&'static Workload, String> {
    let names = || workload::ALL.map(|workload| workload.name).join(", ");
    Workload::named(name).ok_or_else(|| format!("there are: {}", names()))
}

fn has_failures(samples: &BenchSamples) -> bool {
    samples.rows().flat_map(|(_, outcomes)| outcomes).any(|outcome| matches!(outcome, StepOutcome::Failed(_)))
}

/// Returns the conditions of the benchmark, for the head of each section.
fn conditions(arguments: &BenchArguments, plan: &BenchPlan) -> String {
    let scale = if arguments.short { "short scale, steps with a pause left out" } else { "full scale" };
    let peers = plan.peers.iter().map(|peer| peer.name()).collect::<Vec<_>>().join(", ");
    format!(
        "Commit {}. {}. Medians of {} interleaved runs; {scale}. Peers: {peers}. A figure is the time, the round trips \
         that it took beyond the local time, and the ratio to the local time. TCP: {}, buffers of up to {} KiB.",
        bench::commit(),
        bench::machine(),
        plan.runs,
        bench::first_line("/proc/sys/net/ipv4/tcp_congestion_control"),
        plan.buffer_bytes.map_or(32 << 10, |bytes| bytes >> 10),
    )
}
