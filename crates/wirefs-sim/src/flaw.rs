//! Deliberate faults in the composition of the machines. The checks must find each of them.

/// One flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The server announces no change before it applies it.
    TouchesNothing,
    /// The server announces only the first object of a change.
    TouchesTheFirst,
    /// The server applies changes before others have invalidated.
    ChangesTheParked,
    /// The server never executes parked jobs.
    LosesTheParked,
    /// The server leases every reply.
    GrantsEverything,
    /// The server's clock is so fast that it fences silent holders too early.
    FencesEarly,
    /// The server has no grace period after a crash.
    StartsAtOnce,
    /// The server's grace period omits one of the sessions with leases.
    AwaitsAllButOne,
    /// The server does not send a returning client the recalls that it missed.
    LosesWhatWasMissed,
    /// The server does not watch changes by its programs.
    WatchesNothing,
    /// The network loses a recall now and then.
    LosesARecall,
    /// The network loses the acknowledgment of a recall now and then.
    LosesAnAcknowledgment,
    /// The network loses a reply now and then.
    LosesAReply,
    /// The network loses the numbers of changes.
    LosesNumbers,
    /// The client acknowledges a recall without an invalidation in the kernel.
    KeepsTheRecalled,
    /// The client acknowledges a recall before the kernel has invalidated.
    AnswersFirst,
    /// The client leaves the kernel's cache when the leases have expired.
    KeepsTheKernels,
    /// The client leaves the kernel's listings.
    KeepsListings,
    /// The client's clock advances only with events.
    SleepsThrough,
    /// The server has no ledger that outlives its process.
    LedgerOff,
    /// The client's journal drops a change when it is answered, not when it is durable.
    FreesOnReply,
    /// The client answers `fsync` before the server's disk has the data.
    AnswersFsyncEarly,
    /// The client treats a started sync as a finished one.
    TrustsStartedSync,
}

impl Flaw {
    /// The flaws that runs of an exclusive mount find ([`Scene::Ahead`](crate::Scene::Ahead)).
    pub const AHEAD: [Flaw; 4] =
        [Flaw::LedgerOff, Flaw::FreesOnReply, Flaw::AnswersFsyncEarly, Flaw::TrustsStartedSync];

    /// The flaws that runs of several clients find.
    pub const ALL: [Flaw; 19] = [
        Flaw::TouchesNothing,
        Flaw::TouchesTheFirst,
        Flaw::ChangesTheParked,
        Flaw::LosesTheParked,
        Flaw::GrantsEverything,
        Flaw::FencesEarly,
        Flaw::StartsAtOnce,
        Flaw::AwaitsAllButOne,
        Flaw::LosesWhatWasMissed,
        Flaw::WatchesNothing,
        Flaw::LosesARecall,
        Flaw::LosesAnAcknowledgment,
        Flaw::LosesAReply,
        Flaw::LosesNumbers,
        Flaw::KeepsTheRecalled,
        Flaw::AnswersFirst,
        Flaw::KeepsTheKernels,
        Flaw::KeepsListings,
        Flaw::SleepsThrough,
    ];
}
