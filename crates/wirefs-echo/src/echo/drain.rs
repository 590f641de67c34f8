//! Adding and draining hosts.

use wirefs_op::Time;

use super::{BlockRecords, Echo};
use crate::host::{Host, HostConfig, HostId};
use crate::limits::{HOSTS_MAX, SEND_QUEUE_BYTES_MAX};
use crate::window::PacketWindow;

impl Echo {
    /// Adds a host and returns its number. The host is probed first, and gets blocks when it answers. Returns
    /// `None` if there are [`HOSTS_MAX`] hosts, drained ones included: numbers are not reused because they
    /// are part of the nonce.
    pub fn add_host(&mut self, config: HostConfig) -> Option<HostId> {
        let id = HostId(u8::try_from(self.hosts.len()).ok().filter(|_| self.hosts.len() < HOSTS_MAX)?);
        self.hosts.push(Host::new(id, config, self.rate));
        if let BlockRecords::RootOnly(root) = &mut self.records {
            root.windows.push(PacketWindow::new(self.window_packets));
        }
        self.tick_at = Time::default();
        Some(id)
    }

    /// Drains a host: it gets no new packets, and each packet that it returns moves to another host with
    /// room. The host is empty when its status has no packets.
    pub fn drain_host(&mut self, host: HostId) {
        if let Some(record) = self.host_mut(host) {
            record.drain();
        }
    }
}

/// Returns whether packets of a host should move to another host, and can.
pub(super) fn must_move(hosts: &[Host], from: HostId) -> bool {
    let is_draining = hosts.get(usize::from(from.0)).is_some_and(Host::is_draining);
    is_draining
        && hosts.iter().any(|host| host.is_responsive() && host.room() > 0)
        && hosts.iter().map(|host| host.send_queue.bytes()).sum::<usize>() < SEND_QUEUE_BYTES_MAX / 2
}
