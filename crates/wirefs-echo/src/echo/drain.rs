//! Hosts that come and go while the store runs.

use wirefs_op::Time;

use super::{Echo, Known};
use crate::host::{Host, HostConfig, HostId};
use crate::limits::{HOSTS_MAX, OUTBOX_BYTES_MAX};
use crate::window::Window;

impl Echo {
    /// Adds a host; it is asked first, and given blocks when it answers. Its number is the next one. None when there are
    /// [`HOSTS_MAX`] already, those that were drained included: no number is used twice, for it is part of what seals.
    pub fn add_host(&mut self, config: HostConfig) -> Option<HostId> {
        let id = HostId(u8::try_from(self.hosts.len()).ok().filter(|_| self.hosts.len() < HOSTS_MAX)?);
        self.hosts.push(Host::new(id, config, self.rate));
        if let Known::Root(root) = &mut self.known {
            root.windows.push(Window::new(self.window_packets));
        }
        self.tick_at = Time::default();
        Some(id)
    }

    /// Empties a host: it gets no new packets, and each that comes back from it goes to another host from then on, where one
    /// has room. It is empty when its status says that it has no packets.
    pub fn drain_host(&mut self, host: HostId) {
        if let Some(record) = self.host_mut(host) {
            record.drain();
        }
    }
}

/// Whether packets that come from a host should go to another now, and can.
pub(super) fn leaves(hosts: &[Host], from: HostId) -> bool {
    let is_draining = hosts.get(usize::from(from.0)).is_some_and(Host::is_draining);
    is_draining
        && hosts.iter().any(|host| host.is_prompt() && host.room() > 0)
        && hosts.iter().map(|host| host.outbox.bytes()).sum::<usize>() < OUTBOX_BYTES_MAX / 2
}
