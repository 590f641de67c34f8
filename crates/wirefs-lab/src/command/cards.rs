//! `wirefs-lab cards`: reads from a node over TLS, over one network card and over two.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::{env, thread};

use anyhow::Context as _;
use clap::Args;
use wirefs_lab::bench::{PageMarkers, ReportPage};
use wirefs_lab::cards::{CardsPlan, RUNS_MAX, to_section};
use wirefs_lab::{EndSignals, units};

use wirefs_lab::bench::{commit, machine};

#[derive(Args)]
pub(crate) struct CardsArguments {
    /// The rate of both cards, or of the first.
    #[arg(long, value_name = "RATE", default_value = "200mbit", value_parser = units::rate_bits)]
    rate: u64,
    /// The rate of the second card, if it differs.
    #[arg(long, value_name = "RATE", value_parser = units::rate_bits)]
    second: Option<u64>,
    /// The size of the file, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    mib: usize,
    /// Number of reads per configuration; the table shows medians.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    runs: usize,
    /// The wirefs program; by default the one in the directory of this program.
    #[arg(long, value_name = "PROGRAM")]
    wirefs: Option<PathBuf>,
    /// Writes the table between the markers of this page instead of to standard output. Tables of other rates stay.
    #[arg(long, value_name = "PAGE")]
    out: Option<PathBuf>,
}

/// Runs the measurements and reports them.
pub(crate) fn run(arguments: &CardsArguments) -> anyhow::Result<ExitCode> {
    anyhow::ensure!((1..=RUNS_MAX).contains(&arguments.runs), "--runs is a number from 1 to {RUNS_MAX}");
    let rates_bits = [arguments.rate, arguments.second.unwrap_or(arguments.rate)];
    anyhow::ensure!(rates_bits.iter().all(|rate| *rate > 0), "--rate and --second must be positive");
    anyhow::ensure!((1..=4096).contains(&arguments.mib), "--mib is a number from 1 to 4096");
    let signals = EndSignals::block().context("block signals")?;
    let default_wirefs = env::current_exe().context("find this program")?.with_file_name("wirefs");
    let plan = CardsPlan {
        rates_bits,
        bytes: arguments.mib << 20,
        runs: arguments.runs,
        wirefs: arguments.wirefs.clone().unwrap_or(default_wirefs),
        scratch: env::temp_dir().join(format!("wirefs-lab-cards-{}", std::process::id())),
        stop: Arc::default(),
    };
    let stop = Arc::clone(&plan.stop);
    thread::spawn(move || signals.wait().map(|_| stop.store(true, Ordering::Relaxed)));
    let page = arguments.out.as_deref().map(|path| ReportPage::open(path, PageMarkers::CARDS)).transpose()?;
    let samples = plan.run(&mut |line| eprintln!("{line}"))?;
    let conditions = format!(
        "Commit {}. {}. {} interleaved reads of each, MTU 1500, veth with a token bucket at the server, each read the first one of nodes that were \
         just started; the bytes are compared.",
        commit(),
        machine(),
        plan.runs
    );
    let section = to_section(&plan, &samples, &conditions);
    match page {
        Some(page) => page.write(&[section])?,
        None => println!("{section}"),
    }
    Ok(ExitCode::SUCCESS)
}
