//! Metrics of a mount and of a server, as OpenMetrics text, and the page that shows them.

mod http;

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, Result};
use wirefs_metrics::{CallKind, Cause, Exposition, Unit};
use wirefs_mount::MountControl;
use wirefs_serve::{ServeStatus, Server};

use crate::activity::{Activity, Sample};
use crate::status::{Constants, Report};
use std::sync::Arc;

/// A port for metrics, bound and not served yet.
pub(crate) struct MetricsPort(TcpListener);

/// The state that a port shows.
pub(crate) trait Observed: Send + Sync + 'static {
    /// Returns the metrics.
    fn metrics(&self) -> String;
    /// Returns the samples of the page.
    fn samples(&self) -> Vec<Sample>;
}

impl MetricsPort {
    /// Binds the port.
    ///
    /// # Errors
    /// The address is in use or not of this machine.
    pub(crate) fn bind(address: SocketAddr) -> Result<MetricsPort> {
        let listener = TcpListener::bind(address)
            .with_context(|| format!("--metrics: cannot listen on {address}; name a free port"))?;
        Ok(MetricsPort(listener))
    }

    /// Returns the bound address.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn address(&self) -> Result<SocketAddr> {
        self.0.local_addr().context("--metrics: the address is unknown")
    }

    /// Serves the state on threads of its own, until the process ends.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn serve(self, observed: impl Observed) -> Result<()> {
        http::start(self.0, Arc::new(observed)).context("cannot start a thread")
    }
}

/// A mount.
pub(crate) struct ObservedMount {
    pub(crate) mount: MountControl,
    pub(crate) constants: Constants,
}

impl Observed for ObservedMount {
    fn metrics(&self) -> String {
        let mut text = Exposition::default();
        let report = Report::of(&self.mount.status(), &self.constants);
        call_metrics(&mut text, &self.mount, &report.mountpoint);
        connection_metrics(&mut text, &report);
        cache_metrics(&mut text, &report);
        journal_metrics(&mut text, &report);
        text.finish()
    }

    fn samples(&self) -> Vec<Sample> {
        let status = Report::of(&self.mount.status(), &self.constants);
        vec![Sample { status, activity: Activity::of(&self.mount) }]
    }
}

fn call_metrics(text: &mut Exposition, mount: &MountControl, mountpoint: &str) {
    let times = mount.call_times();
    text.histograms("wirefs_call_seconds", "The time of calls by programs.");
    for operation in CallKind::ALL {
        let counts = times.of(operation);
        if counts.count() > 0 {
            text.histogram(&[("mount", mountpoint), ("operation", operation.name())], &counts);
        }
    }
    text.histograms(
        "wirefs_call_cause_seconds",
        "The time of calls by cause; a call without a cause is not counted.",
    );
    for operation in CallKind::ALL {
        for cause in Cause::ALL {
            let counts = times.caused(operation, cause);
            if counts.count() > 0 {
                let labels =
                    [("mount", mountpoint), ("operation", operation.name()), ("cause", cause.name())];
                text.histogram(&labels, &counts);
            }
        }
    }
}

fn connection_metrics(text: &mut Exposition, report: &Report) {
    let mount = ("mount", report.mountpoint.as_str());
    let flag = |is_set: bool| f64::from(u8::from(is_set));
    text.gauges("wirefs_connected", Unit::None, "Whether there is a connection to the server.");
    text.gauge(&[mount], flag(report.connected));
    text.counters("wirefs_connections_lost", Unit::None, "Lost connections.");
    text.counter(&[mount], report.connections_lost as f64);
    if let Some(rtt) = report.rtt_us {
        text.gauges("wirefs_round_trip_seconds", Unit::Seconds, "The least round trip of late.");
        text.gauge(&[mount], rtt as f64 / 1e6);
    }
    text.counters("wirefs_transferred_bytes", Unit::Bytes, "Bytes of messages.");
    text.counter(&[mount, ("direction", "in")], report.bytes_in as f64);
    text.counter(&[mount, ("direction", "out")], report.bytes_out as f64);
    text.counters("wirefs_requests", Unit::None, "Requests to the server.");
    for (kind, count) in &report.requests {
        text.counter(&[mount, ("kind", kind)], *count as f64);
    }
    text.gauges("wirefs_requests_in_flight", Unit::None, "Requests without a reply.");
    text.gauge(&[mount], report.in_flight.values().sum::<u64>() as f64);
    text.gauges("wirefs_calls_waiting", Unit::None, "Calls without an answer.");
    text.gauge(&[mount], report.calls_waiting as f64);
}

fn cache_metrics(text: &mut Exposition, report: &Report) {
    let mount = ("mount", report.mountpoint.as_str());
    let cache = &report.cache;
    text.counters("wirefs_cache_lookups", Unit::None, "Lookups in the cache.");
    for (content, result, count) in [
        ("names", "hit", cache.name_hits),
        ("names", "miss", cache.name_misses),
        ("contents", "hit", cache.data_hits),
        ("contents", "miss", cache.data_misses),
    ] {
        text.counter(&[mount, ("content", content), ("result", result)], count as f64);
    }
    text.gauges("wirefs_cache_contents_bytes", Unit::Bytes, "Contents of files in memory.");
    text.gauge(&[mount], cache.bytes as f64);
    if let Some(leases) = &report.leases {
        text.gauges("wirefs_leased_objects", Unit::None, "Objects whose attributes are leased.");
        text.gauge(&[mount], leases.objects as f64);
        text.counters("wirefs_recalls", Unit::None, "Recalls of leases that were answered.");
        text.counter(&[mount], leases.recalls as f64);
    }
}

fn journal_metrics(text: &mut Exposition, report: &Report) {
    let mount = ("mount", report.mountpoint.as_str());
    let Some(journal) = &report.journal else { return };
    text.gauges("wirefs_journal_changes", Unit::None, "Changes that may not be on the server's disk.");
    text.gauge(&[mount], journal.changes as f64);
    text.gauges("wirefs_journal_bytes", Unit::Bytes, "The bytes of these changes.");
    text.gauge(&[mount], journal.bytes as f64);
    text.gauges("wirefs_journal_unanswered_changes", Unit::None, "Changes that the server does not have.");
    text.gauge(&[mount], journal.unanswered_changes as f64);
    text.counters(
        "wirefs_rejected_changes",
        Unit::None,
        "Changes that the server rejected after their answer.",
    );
    text.counter(&[mount], journal.refused as f64);
}

/// A server.
pub(crate) struct ObservedServer(pub(crate) Arc<Server>);

impl Observed for ObservedServer {
    fn metrics(&self) -> String {
        server_metrics(&self.0.status())
    }

    fn samples(&self) -> Vec<Sample> {
        Vec::new()
    }
}

fn server_metrics(status: &ServeStatus) -> String {
    let mut text = Exposition::default();
    text.gauges("wirefs_server_connections", Unit::None, "Connected clients.");
    text.gauge(&[], status.clients.len() as f64);
    text.gauges("wirefs_server_sessions", Unit::None, "Sessions, with or without a connection.");
    text.gauge(&[], status.sessions as f64);
    text.gauges("wirefs_server_requests_running", Unit::None, "Requests without a last reply.");
    text.gauge(&[], status.running as f64);
    text.gauges("wirefs_server_workers", Unit::None, "Worker threads.");
    text.gauge(&[], status.workers as f64);
    text.counters("wirefs_server_requests", Unit::None, "Requests received.");
    for (kind, count) in &status.requests {
        text.counter(&[("kind", kind)], *count as f64);
    }
    text.counters("wirefs_server_transferred_bytes", Unit::Bytes, "Bytes of messages.");
    text.counter(&[("direction", "in")], status.received_bytes as f64);
    text.counter(&[("direction", "out")], status.sent_bytes as f64);
    text.finish()
}
