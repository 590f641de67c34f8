//! `wirefs-lab check`: measures the lab itself.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use wirefs_lab::{EndSignals, Lab, LabError, LinkProfile, namespace, probe, units};

/// The required rate and exactness of the lab.
const RATE_GOAL_BITS: f64 = 500e6;
const DELAY_ERROR_GOAL_MS: f64 = 0.3;
const PROBE_RATE_BITS: u64 = 100_000_000;
const ROUNDS: usize = 30;
/// The exit code after an interrupt, as in shells.
const INTERRUPTED: i32 = 130;

#[derive(Args)]
pub(crate) struct CheckArguments {
    /// Round-trip time of the long link.
    #[arg(long, value_name = "TIME", default_value = "84ms", value_parser = units::duration)]
    rtt: Duration,
    /// The time of each measurement.
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = units::duration)]
    span: Duration,
    /// Writes JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// One measured value, with or without a goal.
struct CheckResult {
    name: String,
    goal: String,
    measured: String,
    reached: Option<bool>,
}

/// Measures and prints the results; fails if a goal is missed.
pub(crate) fn run(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let signals = EndSignals::block().context("block signals")?;
    thread::spawn(move || {
        if signals.wait().is_ok() {
            namespace::remove_own();
            std::process::exit(INTERRUPTED);
        }
    });
    let results = measure(arguments)?;
    if arguments.json {
        let rows: Vec<String> = results.iter().map(CheckResult::to_json).collect();
        println!("[{}]", rows.join(","));
    } else {
        println!("| what | goal | measured | |\n|---|---|---|---|");
        results.iter().for_each(|result| println!("{}", result.to_row()));
    }
    let missed = results.iter().any(|result| result.reached == Some(false));
    Ok(ExitCode::from(u8::from(missed)))
}

fn measure(arguments: &CheckArguments) -> Result<Vec<CheckResult>, LabError> {
    let lab = Lab::new("check")?;
    let (server, client) = (lab.host("server")?, lab.host("client")?);
    let link = lab.link(&server, &client, LinkProfile::rtt(arguments.rtt))?;
    let (server_address, client_address) = (link.address_a(), link.address_b());
    let (delay, rtt_ms) = (arguments.rtt / 2, arguments.rtt.as_secs_f64() * 1e3);
    let mut results = Vec::new();

    let trips = probe::round_trips(&client, &server, server_address, ROUNDS)?;
    results
        .push(CheckResult::without_goal(format!("TCP ping-pong at {rtt_ms} ms, median"), median_ms(&trips)));

    let errors = probe::delay_errors(
        (&server, server_address),
        (&client, client_address),
        delay,
        PROBE_RATE_BITS,
        arguments.span,
    )?;
    let median = errors.quantile_ms(0.5);
    results.push(CheckResult {
        name: "delay error at 100 Mbit/s, median".to_owned(),
        goal: format!("<= {DELAY_ERROR_GOAL_MS} ms"),
        measured: format!("{median:.3} ms"),
        reached: Some(median <= DELAY_ERROR_GOAL_MS),
    });
    let spread = [0.0, 0.9, 0.99, 1.0].map(|part| format!("{:.3}", errors.quantile_ms(part))).join(" / ");
    results.push(CheckResult::without_goal(
        "the same: least / 90 % / 99 % / most".to_owned(),
        format!("{spread} ms"),
    ));
    let missing = errors.sent.saturating_sub(errors.received());
    results.push(CheckResult::without_goal(
        "the same: lost".to_owned(),
        format!("{missing} of {}", errors.sent),
    ));

    let control = server.run(|| std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control"))?;
    let control = control.map_err(|error| LabError::io("read the congestion control", error))?;
    for (from, to, address, name) in
        [(&server, &client, client_address, "down"), (&client, &server, server_address, "up")]
    {
        let run = probe::tcp_rate(from, to, address, arguments.span / 2, arguments.span)?;
        results.push(CheckResult {
            name: format!("one TCP connection ({}) at {rtt_ms} ms, {name}", control.trim()),
            goal: format!(">= {:.0} Mbit/s", RATE_GOAL_BITS / 1e6),
            measured: format!("{:.0} Mbit/s", run.bits_per_second() / 1e6),
            reached: Some(run.bits_per_second() >= RATE_GOAL_BITS),
        });
    }

    link.set_profile(LinkProfile::default())?;
    let trips = probe::round_trips(&client, &server, server_address, ROUNDS)?;
    results.push(CheckResult::without_goal("TCP ping-pong at 0 ms, median".to_owned(), median_ms(&trips)));
    results.push(CheckResult::without_goal(
        "real-time priority for the link's thread".to_owned(),
        if link.is_real_time() { "yes" } else { "no" }.to_owned(),
    ));
    Ok(results)
}

fn median_ms(sorted: &[Duration]) -> String {
    sorted.get(sorted.len() / 2).map_or("-".to_owned(), |span| format!("{:.3} ms", span.as_secs_f64() * 1e3))
}

impl CheckResult {
    fn without_goal(name: String, measured: String) -> CheckResult {
        CheckResult { name, goal: String::new(), measured, reached: None }
    }

    fn verdict(&self) -> &'static str {
        match self.reached {
            Some(true) => "ok",
            Some(false) => "MISSED",
            None => "",
        }
    }

    fn to_row(&self) -> String {
        format!("| {} | {} | {} | {} |", self.name, self.goal, self.measured, self.verdict())
    }

    fn to_json(&self) -> String {
        use wirefs_lab::control::quoted;
        let fields = [
            ("what", self.name.as_str()),
            ("goal", &self.goal),
            ("measured", &self.measured),
            ("verdict", self.verdict()),
        ];
        let fields = fields.map(|(name, value)| format!("\"{name}\":{}", quoted(value)));
        format!("{{{}}}", fields.join(","))
    }
}
