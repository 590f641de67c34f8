//! Rtimes: the server reports where it spent the time of a request.

#[cfg(test)]
mod tests;

use crate::wire::wire_struct;

wire_struct! {
    /// `Rtimes tag[2] is_parked[1] queue_us[4] run_us[4] disk_us[4] recall_us[4]`, with the tag of a request, before
    /// its last reply. Sent only if [`FEATURE_TIMES`] was negotiated, and only for requests that took the server at
    /// least 20 µs. The four times do not overlap.
    ///
    /// [`FEATURE_TIMES`]: crate::message::version::FEATURE_TIMES
    pub struct Rtimes {
        /// True if the request begins to wait until other clients give back leases; another Rtimes may follow.
        is_parked: bool,
        /// The time in queues, behind other requests, in microseconds.
        queue_us: u32,
        /// The time of execution, in microseconds.
        run_us: u32,
        /// The time in which the execution waited for the file system below, in microseconds.
        disk_us: u32,
        /// The time in which the request was parked, in microseconds.
        recall_us: u32,
    }
}
