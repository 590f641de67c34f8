//! The causes of waits.

use std::time::Duration;

macro_rules! causes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $words:literal,)*) => {
        /// The cause of a part of a call's time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Cause { $($(#[$doc])* $variant,)* }

        impl Cause {
            /// All causes, in the order of their declaration.
            pub const ALL: [Cause; [$($name),*].len()] = [$(Cause::$variant),*];

            /// Returns the name in metrics and JSON.
            pub fn name(self) -> &'static str {
                match self { $(Cause::$variant => $name,)* }
            }

            /// Returns the cause in words, as the object of "waited for".
            pub fn words(self) -> &'static str {
                match self { $(Cause::$variant => $words,)* }
            }
        }
    };
}

causes! {
    /// The mount computes, or the kernel takes its answer.
    Local "local" "this mount's own work",
    /// A thread of the mount waits for a processor.
    Processor "processor" "a free processor of this machine",
    /// The local disk writes the journal.
    JournalDisk "journal_disk" "this machine's disk, for the journal",
    /// The local disk reads the cache.
    CacheDisk "cache_disk" "this machine's disk, for the cache",
    /// Earlier requests or changes of the same mount come first.
    Queue "queue" "earlier requests of this mount",
    /// There is no connection to the server.
    Offline "offline" "a connection to the server",
    /// The network, in both directions.
    Wire "wire" "the network",
    /// Earlier requests at the server come first.
    ServerQueue "server_queue" "earlier requests at the server",
    /// The server computes.
    Server "server" "the server's processor",
    /// The server's disk or file system.
    ServerDisk "server_disk" "the server's disk",
    /// Another client gives back a lease.
    Recall "recall" "another client to give back its lease",
    /// Another program holds a lock.
    Lock "lock" "a lock that another program holds",
}

/// The time spent for each cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    nanos: [u64; Cause::ALL.len()],
}

impl Causes {
    /// Adds time.
    pub fn add(&mut self, cause: Cause, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let Some(sum) = self.nanos.get_mut(cause as usize) {
            *sum = sum.saturating_add(nanos);
        }
    }

    /// Moves at most this much time from one cause to another.
    pub fn shift(&mut self, from: Cause, to: Cause, time: Duration) {
        let moved = time.min(self.of(from));
        if let Some(sum) = self.nanos.get_mut(from as usize) {
            *sum -= u64::try_from(moved.as_nanos()).unwrap_or(u64::MAX);
        }
        self.add(to, moved);
    }

    /// Returns the time spent for a cause.
    pub fn of(&self, cause: Cause) -> Duration {
        Duration::from_nanos(self.nanos.get(cause as usize).copied().unwrap_or_default())
    }

    /// Returns the sum over all causes.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.nanos.iter().fold(0, |sum, nanos| sum.saturating_add(*nanos)))
    }

    /// Returns the causes that took time, the longest first.
    pub fn by_time(&self) -> Vec<(Cause, Duration)> {
        let all = Cause::ALL.into_iter().map(|cause| (cause, self.of(cause)));
        let mut causes: Vec<_> = all.filter(|(_, time)| !time.is_zero()).collect();
        causes.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        causes
    }
}
