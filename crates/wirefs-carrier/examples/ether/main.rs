//! Measures the ether carrier between two namespaces joined by veth, beside alternatives. Needs root.
//!
//! `cargo run --release -p wirefs-carrier --example ether -- latency|blocking|bulk|cards|rest|protocol [rounds]`

mod bare;
mod bulk;
mod cards;
mod idle;
mod latency;
mod protocol;
mod site;

use latency::Regime;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    let rounds = arguments.next().map_or(Ok(5), |text| text.parse())?;
    match what.as_str() {
        "latency" => latency::run(rounds, Regime::Polling),
        "blocking" => latency::run(rounds, Regime::Blocking),
        "protocol" => protocol::run(),
        "bulk" => bulk::run(rounds),
        "cards" => cards::run(rounds),
        "idle" => idle::run(),
        _ => Err("say latency, blocking, bulk, cards, idle or protocol".into()),
    }
}
