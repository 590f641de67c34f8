//! Placement of packets on hosts.

use std::time::Duration;

use super::{Distance, Echo};
use crate::host::{Host, HostId};
use crate::limits::{HOSTS_MAX, LANES_MAX};
use crate::packet::LaneId;

/// The hosts of a new block, one per packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    hosts: [HostId; LANES_MAX],
    count: usize,
}

impl Places {
    /// Returns the hosts in the order of lanes.
    pub(super) fn hosts(&self) -> &[HostId] {
        self.hosts.get(..self.count).unwrap_or_default()
    }

    /// Returns the hosts with their lanes.
    pub(super) fn lanes(&self) -> impl Iterator<Item = (LaneId, HostId)> + '_ {
        self.hosts().iter().enumerate().map(|(lane, &host)| (LaneId(lane as u8), host))
    }
}

impl Echo {
    /// Chooses a host with room for each packet of a new block, different hosts if possible. Returns `None`
    /// if there is no room.
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

    /// Chooses a host for one more packet of a block that has `taken` packets at each host.
    pub(super) fn best_host(&self, distance: Distance, taken: &[u64; HOSTS_MAX]) -> Option<HostId> {
        let free = |host: &Host| {
            let taken = taken.get(usize::from(host.id.0)).copied().unwrap_or(0);
            (taken, host.room().saturating_sub(taken))
        };
        let far = |host: &Host| host.rtt_min().unwrap_or(Duration::MAX);
        let candidates = self.hosts.iter().filter(|host| host.is_responsive() && free(host).1 > 0);
        // The minimum wins: a host without a packet of the block comes first.
        let best = match distance {
            Distance::Any => candidates.min_by_key(|host| (free(host).0, u64::MAX - free(host).1)),
            Distance::Near => candidates.min_by_key(|host| (free(host).0, far(host))),
            Distance::Far => candidates.min_by_key(|host| (free(host).0, Duration::MAX - far(host))),
        };
        best.map(|host| host.id)
    }

    /// Returns the state of a host.
    pub(super) fn host_mut(&mut self, host: HostId) -> Option<&mut Host> {
        self.hosts.get_mut(usize::from(host.0))
    }
}
