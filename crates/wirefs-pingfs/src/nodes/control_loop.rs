//! The control thread: receives control packets, sends hello packets, and ticks the replica.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_echo::replication::ReplicaInput;
use wirefs_echo::replication::wire::IDS_MAX;

use super::NodeShared;
use super::local_replica::LocalReplica;
use crate::limits::{CONTROL_BATCH_MAX, HEARTBEAT};

/// The longest wait before the thread checks for other work.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Runs the loop until the store is dropped.
pub(super) fn run(shared: &Arc<NodeShared>) {
    let mut room = Vec::new();
    let mut hello_sent: Option<Instant> = None;
    while !shared.is_over() {
        let mut replica = shared.replica();
        for _ in 0..CONTROL_BATCH_MAX {
            let Ok(Some(packet)) = shared.relay.receive(&mut room) else { break };
            if let Some(message) = replica.channel.open(packet) {
                shared.receive(&mut replica, message);
            }
        }
        if hello_sent.is_none_or(|at| at.elapsed() >= HEARTBEAT) {
            hello_sent = Some(Instant::now());
            send_hellos(shared, &mut replica);
        }
        if replica.machine.deadline() <= shared.now() {
            shared.handle_input(&mut replica, ReplicaInput::Tick);
        }
        let wait = (replica.machine.deadline() - shared.now()).min(PAUSE_MAX);
        drop(replica);
        wait_for_event(shared, wait);
    }
}

/// Sends hello packets to nodes that are not connected, and updates the replica's state.
fn send_hellos(shared: &NodeShared, replica: &mut LocalReplica) {
    replica.set_hosts(shared.echo.hosts());
    if let Some(room) = shared.echo.room_now() {
        replica.machine.set_free_blocks(room.blocks_free);
    }
    let lost = shared.echo.lost(IDS_MAX);
    shared.request_lost(replica, &lost);
    shared.request_read(replica);
    let is_recent = |at: &Instant| at.elapsed() < HEARTBEAT * 4;
    let connected: BTreeSet<Ipv4Addr> = replica
        .channel
        .peers()
        .filter(|(id, _)| replica.last_received.get(id).is_some_and(is_recent))
        .map(|(_, address)| address.into())
        .collect();
    // A known node that is silent may have been restarted.
    let known = replica.channel.peers().map(|(_, address)| Ipv4Addr::from(address));
    let wanted: BTreeSet<Ipv4Addr> = known.chain(replica.configured_peers.iter().copied()).collect();
    for address in wanted.difference(&connected) {
        if let Some(hello) = replica.channel.hello() {
            shared.send_to(replica, *address, &hello);
        }
    }
}

/// Waits for a control packet, the wakeup descriptor, or the deadline.
fn wait_for_event(shared: &NodeShared, wait: Duration) {
    let Ok(timeout) = Timespec::try_from(wait) else { return };
    let mut all = [PollFd::new(&shared.relay, PollFlags::IN), PollFd::new(&shared.wakeup, PollFlags::IN)];
    // Interrupted or not: the next round checks the sockets itself.
    let _woken = poll(&mut all, Some(&timeout));
    if all.last().is_some_and(|wakeup| !wakeup.revents().is_empty()) {
        let _silent = rustix::io::read(&shared.wakeup, &mut [0; 8]);
    }
}
