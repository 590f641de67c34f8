//! Processor use of two nodes with an idle carrier between them.

use std::time::{Duration, Instant};

use bytes::Bytes;
use wirefs_carrier::{Class, SendQueue};
use wirefs_op::Frame;

use crate::Outcome;
use crate::site::Site;

const SPAN: Duration = Duration::from_secs(10);

/// Returns the processor seconds that this process has used.
fn cpu_seconds() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

pub(crate) fn run() -> Outcome<()> {
    let site = Site::new(1, 1_500)?;
    let (near, mut far) = site.ether()?;
    let mut source = near.source;
    let out = SendQueue::start(near.sink, near.closer, |_| {});
    out.push(Frame { head: vec![7, 0, 0, 0, 1, 1, 0], data: Bytes::new() }, Class::Urgent);
    out.flush();
    far.source.receive()?.ok_or("the peer closed")?;
    std::thread::scope(|scope| {
        // Both wait, as a mount and its server do.
        let mut far_source = far.source;
        scope.spawn(move || drop(source.receive()));
        scope.spawn(move || drop(far_source.receive()));
        std::thread::sleep(Duration::from_secs(1));
        let (begun, before) = (Instant::now(), cpu_seconds());
        std::thread::sleep(SPAN);
        let share = (cpu_seconds() - before) / begun.elapsed().as_secs_f64() * 100.0;
        println!("two idle nodes use {share:.2} % of a processor together");
        out.close();
        far.closer.close();
    });
    Ok(())
}
