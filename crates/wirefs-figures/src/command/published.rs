//! `wirefs-figures published`: the evaluations of SNFS and of an AFS-like system.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::{env, fs, thread};

use anyhow::Context as _;
use clap::Args;
use wirefs_figures::published::{
    BATCHES, BatchWriter, CrashPoint, PublishedPlan, RUNS_MAX, SIZES, plots, to_sections,
};
use wirefs_lab::bench::{PageMarkers, ReportPage};
use wirefs_lab::{EndSignals, units};

use super::fetch::find;
use wirefs_lab::bench::{commit, machine};

/// The lines around the part of the page that this subcommand writes.
const MARKERS: PageMarkers = PageMarkers {
    begin: "<!-- published: begin (written by `wirefs-figures published`; do not edit by hand) -->",
    end: "<!-- published: end -->",
};

#[derive(Args)]
pub(crate) struct PublishedArguments {
    /// Number of runs of each measurement; the tables show medians.
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    runs: usize,
    /// The round-trip times over which files are opened, separated by commas; 0 is a plain veth pair.
    #[arg(long, value_name = "TIME,…", default_value = "0,10", value_delimiter = ',', value_parser = units::duration)]
    rtt: Vec<Duration>,
    /// Quick run: small files, once each.
    #[arg(long)]
    short: bool,
    /// The wirefs program; by default the one in the directory of this program.
    #[arg(long, value_name = "PROGRAM")]
    wirefs: Option<PathBuf>,
    /// Writes the tables between the markers of this page, and the plots into `figures` beside it, instead of to
    /// standard output.
    #[arg(long, value_name = "PAGE")]
    out: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct BatchArguments {
    path: PathBuf,
    #[arg(long)]
    pieces: usize,
    #[arg(long, default_value = "none", value_parser = CrashPoint::parse)]
    crash: CrashPoint,
    #[arg(long)]
    server_pid: Option<i32>,
}

/// Runs the measurements and reports them.
pub(crate) fn run(arguments: &PublishedArguments) -> anyhow::Result<ExitCode> {
    anyhow::ensure!((1..=RUNS_MAX).contains(&arguments.runs), "--runs is a number from 1 to {RUNS_MAX}");
    let signals = EndSignals::block().context("block signals")?;
    let plan = plan(arguments)?;
    let stop = Arc::clone(&plan.stop);
    thread::spawn(move || signals.wait().map(|_| stop.store(true, Ordering::Relaxed)));
    let page = arguments.out.as_deref().map(|path| ReportPage::open(path, MARKERS)).transpose()?;
    let samples = plan.run(&mut |line| eprintln!("{line}"))?;
    let sections = to_sections(&plan, &samples, &conditions(&plan));
    match (page, &arguments.out) {
        (Some(page), Some(path)) => {
            page.write(&sections)?;
            draw(path, &plots(&plan, &samples))?;
        }
        _ => sections.iter().for_each(|section| println!("{section}")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes one file in this process.
pub(crate) fn write(arguments: &BatchArguments) -> anyhow::Result<ExitCode> {
    let BatchArguments { path, pieces, crash, server_pid } = arguments;
    let batch = BatchWriter { path: path.clone(), pieces: *pieces, crash: *crash, server_pid: *server_pid };
    println!("{}", batch.run()?.to_line());
    Ok(ExitCode::SUCCESS)
}

fn plan(arguments: &PublishedArguments) -> anyhow::Result<PublishedPlan> {
    let this = env::current_exe().context("find this program")?;
    let has_sshfs = find("sshfs");
    if !has_sshfs {
        eprintln!("sshfs is not here, so it is left out; on Debian: apt-get install sshfs");
    }
    let short = arguments.short;
    Ok(PublishedPlan {
        runs: if short { 1 } else { arguments.runs },
        killed: if short { 256 } else { 10 << 10 },
        batches: if short { vec![256] } else { BATCHES.to_vec() },
        sizes: if short { vec![64, 256] } else { SIZES.to_vec() },
        rtts: if short { vec![Duration::ZERO] } else { arguments.rtt.clone() },
        has_sshfs,
        wirefs: arguments.wirefs.clone().unwrap_or(this.with_file_name("wirefs")),
        program: this,
        scratch: env::temp_dir().join(format!("wirefs-figures-published-{}", std::process::id())),
        stop: Arc::default(),
    })
}

fn draw(page: &Path, plots: &[(String, String)]) -> anyhow::Result<()> {
    let directory = page.with_file_name("figures");
    fs::create_dir_all(&directory).with_context(|| format!("make {}", directory.display()))?;
    for (name, svg) in plots {
        let path = directory.join(name);
        fs::write(&path, svg).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}

/// Returns the conditions of the measurement, for the heads of the sections.
fn conditions(plan: &PublishedPlan) -> String {
    format!(
        "Commit {}. {}. Medians of {} interleaved runs, each on a mount made anew, without the cache on disk. At RTT 0 the hosts are joined \
         by a plain veth pair.",
        commit(),
        machine(),
        plan.runs,
    )
}
