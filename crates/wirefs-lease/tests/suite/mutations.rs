//! Deliberate mistakes in driving the machines, each of which the checker must detect.

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// The server grants a reply as if its job had begun only now.
    GrantsTheChanged,
    /// The server ignores silent holders before their leases have expired.
    FencesEarly,
    /// The server does not send missed recalls when a holder joins again.
    LosesTheMissed,
    /// The server removes a holder at once that does not answer.
    RemovesTheExpelled,
    /// The server does not wait after an unclean end.
    SkipsRecovery,
    /// The server runs several changes of the names of one directory at the same time.
    SharesDirectories,
    /// The server does not touch objects that it removes or replaces.
    TouchesNoVictim,
    /// The server does not recall objects from the requester that it could not foresee.
    SkipsOwnRecalls,
    /// The server does not watch external changes.
    WatchesNothing,
    /// The server does not retry parked jobs.
    LosesTheParked,
    /// The server applies changes of parked jobs.
    ChangesTheParked,
    /// The wire lets replies overtake recalls that were queued before them.
    OvertakesRecalls,
    /// The client treats replies as leased although a recall overtook them.
    UsesOvertakenReplies,
    /// The client answers a recall before the kernel has invalidated.
    AnswersFirst,
    /// The client does not invalidate recalled data.
    IgnoresRecalls,
    /// The client counts the term from the reply.
    CountsFromReplies,
    /// The client does not invalidate the kernel's caches when the leases have expired.
    SkipsKernelInvalidation,
    /// The client's clock stops while the machine sleeps.
    SleepsThrough,
    /// The client treats leases as retained although they are void.
    UsesVoidLeases,
}

impl Mutation {
    pub(crate) const ALL: [Mutation; 19] = [
        Mutation::GrantsTheChanged,
        Mutation::FencesEarly,
        Mutation::LosesTheMissed,
        Mutation::RemovesTheExpelled,
        Mutation::SkipsRecovery,
        Mutation::SharesDirectories,
        Mutation::TouchesNoVictim,
        Mutation::SkipsOwnRecalls,
        Mutation::WatchesNothing,
        Mutation::LosesTheParked,
        Mutation::ChangesTheParked,
        Mutation::OvertakesRecalls,
        Mutation::UsesOvertakenReplies,
        Mutation::AnswersFirst,
        Mutation::IgnoresRecalls,
        Mutation::CountsFromReplies,
        Mutation::SkipsKernelInvalidation,
        Mutation::SleepsThrough,
        Mutation::UsesVoidLeases,
    ];
}
