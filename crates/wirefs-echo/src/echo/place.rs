//! Which host a packet goes to.

use std::time::Duration;

use super::{Distance, Echo};
use crate::host::{Host, HostId};
use crate::limits::{HOSTS_MAX, LANES_MAX};
use crate::packet::LaneId;

/// The hosts of a new block, one for each of its packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    hosts: [HostId; LANES_MAX],
    count: usize,
}

impl Places {
    /// One for each packet, in the order of lanes.
    pub(super) fn hosts(&self) -> &[HostId] {
        self.hosts.get(..self.count).unwrap_or_default()
    }

    /// The same with the number of the lane.
    pub(super) fn lanes(&self) -> impl Iterator<Item = (LaneId, HostId)> + '_ {
        self.hosts().iter().enumerate().map(|(lane, &host)| (LaneId(lane as u8), host))
    }
}

impl Echo {
    /// Finds a host for each packet of a new block: different ones as far as there are, each with room. None when some
    /// packet finds none.
    pub(super) fn place_block(&self, distance: Distance) -> Option<Places> {
        let mut places = Places { hosts: [HostId(0); LANES_MAX], count: 0 };
        let mut taken = [0u64; HOSTS_MAX];
        for slot in places.hosts.iter_mut().take(self.shape.lanes) {
            *slot = self.best_host(distance, &taken)?;
            if let Some(count) = taken.get_mut(usize::from(slot.0)) {
                *count += 1;
            }
            places.count += 1;
        }
        Some(places)
    }

    /// Finds a host for one packet more of a block that has `taken` packets at each of them.
    pub(super) fn best_host(&self, distance: Distance, taken: &[u64; HOSTS_MAX]) -> Option<HostId> {
        let free = |host: &Host| {
            let taken = taken.get(usize::from(host.id.0)).copied().unwrap_or(0);
            (taken, host.room().saturating_sub(taken))
        };
        let far = |host: &Host| host.shortest().unwrap_or(Duration::MAX);
        let candidates = self.hosts.iter().filter(|host| host.is_prompt() && free(host).1 > 0);
        // The least is the best: first of all a host that has no packet of the block yet.
        let best = match distance {
            Distance::Any => candidates.min_by_key(|host| (free(host).0, u64::MAX - free(host).1)),
            Distance::Near => candidates.min_by_key(|host| (free(host).0, far(host))),
            Distance::Far => candidates.min_by_key(|host| (free(host).0, Duration::MAX - far(host))),
        };
        best.map(|host| host.id)
    }

    /// The record of a host.
    pub(super) fn host_mut(&mut self, host: HostId) -> Option<&mut Host> {
        self.hosts.get_mut(usize::from(host.0))
    }
}
