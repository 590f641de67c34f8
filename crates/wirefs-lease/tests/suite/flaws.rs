//! Ways to drive the machines wrongly, each of which the checker has to notice.

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The server: a reply is granted as if its job began only now.
    GrantsWhatChanged,
    /// The server: silent holders are given up before their leases have run out.
    FencesEarly,
    /// The server: what a holder missed is not sent when it joins again.
    LosesWhatWasMissed,
    /// The server: a holder that does not answer is forgotten at once.
    ForgetsTheExpelled,
    /// The server: does not wait after an unclean end.
    StartsAtOnce,
    /// The server: several changes of the names of one directory at a time.
    SharesDirectories,
    /// The server: does not touch what it removes and replaces.
    TouchesNoVictim,
    /// The server: does not tell a client of what it changed unknowingly.
    HidesSurprises,
    /// The server: does not watch what programs change.
    WatchesNothing,
    /// The server: does not carry out again what was parked.
    LosesTheParked,
    /// The server: changes although it is parked.
    ChangesTheParked,
    /// The wire: replies overtake recalls that were queued before them.
    OvertakesRecalls,
    /// The client: takes replies for leased although a recall overtook them.
    BelievesTheOvertaken,
    /// The client: answers a recall before the kernel has forgotten.
    AnswersFirst,
    /// The client: forgets nothing.
    KeepsTheRecalled,
    /// The client: counts the term from the reply on.
    CountsFromReplies,
    /// The client: leaves the kernel what it has when the leases have run out.
    KeepsTheKernels,
    /// The client: its clock stands while the machine sleeps.
    SleepsThrough,
    /// The client: takes what it has for kept when it is not.
    KeepsTheUnkept,
}

impl Flaw {
    pub(crate) const ALL: [Flaw; 19] = [
        Flaw::GrantsWhatChanged,
        Flaw::FencesEarly,
        Flaw::LosesWhatWasMissed,
        Flaw::ForgetsTheExpelled,
        Flaw::StartsAtOnce,
        Flaw::SharesDirectories,
        Flaw::TouchesNoVictim,
        Flaw::HidesSurprises,
        Flaw::WatchesNothing,
        Flaw::LosesTheParked,
        Flaw::ChangesTheParked,
        Flaw::OvertakesRecalls,
        Flaw::BelievesTheOvertaken,
        Flaw::AnswersFirst,
        Flaw::KeepsTheRecalled,
        Flaw::CountsFromReplies,
        Flaw::KeepsTheKernels,
        Flaw::SleepsThrough,
        Flaw::KeepsTheUnkept,
    ];
}
