//! Ways to build the machines together wrongly, each of which the checks have to notice.

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The server: touches nothing before it changes something.
    TouchesNothing,
    /// The server: touches only the first of what a change is about.
    TouchesTheFirst,
    /// The server: changes although others have to hear of it first.
    ChangesTheParked,
    /// The server: does not carry out what was put aside.
    LosesTheParked,
    /// The server: everything that is told is leased.
    GrantsEverything,
    /// The server: its clock is so fast that it gives up silent holders too early.
    FencesEarly,
    /// The server: does not wait after it crashed.
    StartsAtOnce,
    /// The server: does not wait for one of those to come back whom it had promised something before it crashed.
    AwaitsAllButOne,
    /// The server: does not tell a client that comes back what it missed.
    LosesWhatWasMissed,
    /// The server: does not watch what programs change.
    WatchesNothing,
    /// The wire: loses a recall now and then, and nothing else.
    LosesARecall,
    /// The wire: loses the answer to a recall now and then.
    LosesARecalled,
    /// The wire: loses a reply now and then.
    LosesAReply,
    /// The wire: loses the numbers of changes.
    LosesNumbers,
    /// The client: says that the kernel has forgotten, and has it forget nothing.
    KeepsTheRecalled,
    /// The client: answers a recall before the kernel has forgotten.
    AnswersFirst,
    /// The client: leaves the kernel what it has when the leases have run out.
    KeepsTheKernels,
    /// The client: leaves the kernel the listings that it has gathered.
    KeepsListings,
    /// The client: time passes for it only when something happens.
    SleepsThrough,
    /// The server: keeps no ledger that outlives its process.
    LedgerOff,
    /// The client: its journal forgets a change when the server has answered it, not when its disk has it.
    FreesOnReply,
    /// The client: `fsync` is answered before the server's disk has anything.
    AnswersFsyncEarly,
    /// The client: takes what its disk was told to sync for synced.
    TakesBegunForDone,
}

impl Flaw {
    /// Those that a mount that is ahead of its server shows ([`Scene::Ahead`](crate::Scene::Ahead)).
    pub const AHEAD: [Flaw; 4] =
        [Flaw::LedgerOff, Flaw::FreesOnReply, Flaw::AnswersFsyncEarly, Flaw::TakesBegunForDone];

    /// Those that clients beside each other show.
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
        Flaw::LosesARecalled,
        Flaw::LosesAReply,
        Flaw::LosesNumbers,
        Flaw::KeepsTheRecalled,
        Flaw::AnswersFirst,
        Flaw::KeepsTheKernels,
        Flaw::KeepsListings,
        Flaw::SleepsThrough,
    ];
}
