//! Measures where the time of file operations goes.
//!
//! *Holds*: the spans of a [`Timeline`] have no gaps, so the causes of a wait add up to exactly the time waited. A
//! [`Histogram`] has a fixed size, and adding a value takes no lock.
//!
//! *Never*: a clock, I/O, names of files.
//!
//! *Drive it*: a caller extends a [`Timeline`] at each transition, and adds its causes to [`CallLatencies`].
//! ```
//! use wirefs_metrics::{CallLatencies, Cause, CallKind, Timeline};
//! use wirefs_op::Time;
//!
//! let mut timeline = Timeline::starting(Time(0), Cause::Queue);
//! timeline.extend(Time(30), Cause::Wire);
//! timeline.extend(Time(100), Cause::Server);
//! let causes = timeline.causes(Time(0), Time(100));
//! assert_eq!((causes.of(Cause::Wire).as_nanos(), causes.of(Cause::Server).as_nanos()), (30, 70));
//! let times = CallLatencies::default();
//! times.add(CallKind::Read, &causes);
//! assert_eq!(times.of(CallKind::Read).count(), 1);
//! ```
//!
//! *Proved by*: `timeline/tests.rs` (sums over random timelines), `histogram/tests.rs`, `exposition/tests.rs` (the
//! grammar of OpenMetrics).

mod call_kind;
mod call_latencies;
mod cause;
mod exposition;
mod histogram;
mod timeline;

pub use call_kind::CallKind;
pub use call_latencies::CallLatencies;
pub use cause::{Cause, Causes};
pub use exposition::{Exposition, Labels, Unit};
pub use histogram::{Counts, Histogram};
pub use timeline::Timeline;
