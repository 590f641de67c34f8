//! The local replica: the state machine, its control channel, and the current transaction. Its commands are
//! executed here unless they wait for blocks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Weak;
use std::time::{Duration, Instant};

use bytes::Bytes;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::store::BlockStore;
use wirefs_blocks::transactions::RootFollower;
use wirefs_echo::replication::control_channel::{ControlChannel, ControlMessage};
use wirefs_echo::replication::{Replica, ReplicaId, ReplicaInput, ReplicaOutput};

use super::NodeShared;
use super::background::RootCheck;
use crate::limits::{FREED_MAX, TOMBSTONES_MAX};
use crate::store::{packed, unpacked};

/// State of the local transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransactionState {
    /// No transaction.
    Idle,
    /// Waits for the write token.
    Waiting,
    /// Applies the change to this root.
    Running(Option<BlockId>),
    /// The other nodes are to accept its root.
    Committing(BlockId),
    /// The root was committed (`true`) or aborted.
    Decided(bool),
}

/// State under the lock.
pub(super) struct LocalReplica {
    pub(super) machine: Replica,
    pub(super) channel: ControlChannel,
    pub(super) transaction: TransactionState,
    /// The last transaction that waited for the token timed out.
    pub(super) is_cut_off: bool,
    /// The blocks of the current transaction.
    pub(super) new_blocks: BTreeMap<BlockId, Bytes>,
    /// Blocks freed here, to be announced with the next root.
    pub(super) freed: VecDeque<BlockId>,
    /// Those that the current root announces.
    pub(super) announced_frees: Vec<BlockId>,
    /// Blocks to be deleted when the transaction has ended.
    pub(super) pending_deletes: BTreeSet<BlockId>,
    tombstones: BTreeSet<BlockId>,
    tombstone_order: VecDeque<BlockId>,
    pub(super) follower: Option<Weak<dyn RootFollower>>,
    /// The root that the follower switches to when it is read.
    pending_root: Option<BlockId>,
    /// When the current root arrived.
    pub(super) root_since: Instant,
    pub(super) has_left: bool,
    /// Addresses where other nodes are expected.
    pub(super) configured_peers: Vec<Ipv4Addr>,
    /// When each node sent its last message.
    pub(super) last_received: BTreeMap<ReplicaId, Instant>,
    hosts: Vec<Ipv4Addr>,
    host: usize,
    pub(super) retry: Duration,
    pub(super) copies_sent: u64,
    pub(super) copies_received: u64,
}

impl LocalReplica {
    pub(super) fn new(
        machine: Replica,
        channel: ControlChannel,
        configured_peers: Vec<Ipv4Addr>,
        retry: Duration,
    ) -> LocalReplica {
        LocalReplica {
            machine,
            channel,
            transaction: TransactionState::Idle,
            is_cut_off: false,
            new_blocks: BTreeMap::new(),
            freed: VecDeque::new(),
            announced_frees: Vec::new(),
            pending_deletes: BTreeSet::new(),
            tombstones: BTreeSet::new(),
            tombstone_order: VecDeque::new(),
            follower: None,
            pending_root: None,
            root_since: Instant::now(),
            has_left: false,
            configured_peers,
            last_received: BTreeMap::new(),
            hosts: Vec::new(),
            host: 0,
            retry,
            copies_sent: 0,
            copies_received: 0,
        }
    }

    /// Sets the hosts through which control packets are sent.
    pub(super) fn set_hosts(&mut self, hosts: Vec<IpAddr>) {
        self.hosts = hosts
            .into_iter()
            .filter_map(|host| match host {
                IpAddr::V4(host) => Some(host),
                IpAddr::V6(_) => None,
            })
            .collect();
    }

    /// Announces a freed block with the next root.
    pub(super) fn announce_free_later(&mut self, id: BlockId) {
        if self.freed.len() < FREED_MAX {
            self.freed.push_back(id);
        }
    }

    fn add_tombstone(&mut self, id: BlockId) {
        if self.tombstones.insert(id) {
            self.tombstone_order.push_back(id);
        }
        if self.tombstone_order.len() > TOMBSTONES_MAX
            && let Some(oldest) = self.tombstone_order.pop_front()
        {
            self.tombstones.remove(&oldest);
        }
    }
}

fn all_unpacked(ids: impl IntoIterator<Item = wirefs_echo::EchoBlockId>) -> Vec<BlockId> {
    ids.into_iter().filter_map(unpacked).collect()
}

impl NodeShared {
    /// Passes an input to the state machine and executes its commands.
    pub(super) fn handle_input(&self, replica: &mut LocalReplica, input: ReplicaInput) {
        replica.machine.handle(self.now(), input);
        while let Some(output) = replica.machine.poll() {
            self.execute(replica, output);
        }
    }

    pub(super) fn execute(&self, replica: &mut LocalReplica, output: ReplicaOutput) {
        match output {
            ReplicaOutput::Send { to, message } => {
                let packets = replica.channel.message(to, &message);
                self.send(replica, to, packets);
            }
            ReplicaOutput::CopyBlocks { to, ids } => self.copy_blocks(replica, to, all_unpacked(ids)),
            ReplicaOutput::RunChange { base } => {
                replica.is_cut_off = false;
                match replica.transaction {
                    TransactionState::Waiting => {
                        replica.transaction = TransactionState::Running(base.and_then(unpacked));
                        self.changed.notify_all();
                    }
                    // The transaction that requested it has ended.
                    TransactionState::Idle
                    | TransactionState::Running(_)
                    | TransactionState::Committing(_)
                    | TransactionState::Decided(_) => {
                        replica.machine.handle(self.now(), ReplicaInput::ChangeDone(None));
                    }
                }
            }
            ReplicaOutput::Check { root, new_blocks } => {
                if let Some(root) = unpacked(root) {
                    let check = RootCheck { root, new_blocks: new_blocks.map(all_unpacked) };
                    self.tasks().check(check, replica.retry);
                    self.task_added.notify_all();
                }
            }
            ReplicaOutput::Adopt { root } => self.adopt(replica, root),
            ReplicaOutput::Free { ids } => {
                replica.pending_deletes.extend(all_unpacked(ids));
                self.delete_pending_if_unused(replica);
            }
            ReplicaOutput::Committed { root } => {
                replica.new_blocks.clear();
                replica.announced_frees.clear();
                if !self.decide(replica, root, true) {
                    // The transaction timed out, so its tree has not switched. By now the root may have been
                    // replaced.
                    replica.pending_root = replica.machine.root().and_then(unpacked);
                    self.switch_to_pending_root(replica);
                    self.request_read(replica);
                }
            }
            ReplicaOutput::Aborted { root } => {
                let discarded: Vec<BlockId> = std::mem::take(&mut replica.new_blocks).into_keys().collect();
                self.echo.deregister(&discarded);
                for id in std::mem::take(&mut replica.announced_frees) {
                    replica.announce_free_later(id);
                }
                let _was_awaited = self.decide(replica, root, false);
            }
            ReplicaOutput::Left => {
                replica.has_left = true;
                self.changed.notify_all();
            }
        }
    }

    /// Sends the blocks of the current transaction, and schedules the copies of older ones.
    fn copy_blocks(&self, replica: &mut LocalReplica, to: ReplicaId, ids: Vec<BlockId>) {
        let (new_blocks, older): (Vec<BlockId>, Vec<BlockId>) =
            ids.into_iter().partition(|id| replica.new_blocks.contains_key(id));
        for id in new_blocks {
            if let Some(block) = replica.new_blocks.get(&id).cloned() {
                self.copy(replica, to, id, &block);
            }
        }
        self.tasks().copy(to, older);
        self.task_added.notify_all();
    }

    /// Deletes blocks that no current or future root reaches.
    fn delete_pending(&self, replica: &mut LocalReplica) {
        let ids: Vec<BlockId> = std::mem::take(&mut replica.pending_deletes).into_iter().collect();
        ids.iter().for_each(|id| replica.add_tombstone(*id));
        self.echo.deregister(&ids);
    }

    /// Deletes them unless the tree still shows the former root: until its own transaction has ended, or the
    /// current root is read.
    pub(super) fn delete_pending_if_unused(&self, replica: &mut LocalReplica) {
        let is_behind = replica.pending_root.is_some() && replica.pending_deletes.len() <= FREED_MAX;
        let is_shown = is_behind
            || matches!(replica.transaction, TransactionState::Committing(_) | TransactionState::Decided(_));
        if !is_shown && !replica.pending_deletes.is_empty() {
            self.delete_pending(replica);
        }
    }

    /// Ends the commit phase. Returns whether a transaction waits for this root.
    fn decide(&self, replica: &mut LocalReplica, root: wirefs_echo::EchoBlockId, is_committed: bool) -> bool {
        let is_awaited =
            unpacked(root).is_some_and(|root| replica.transaction == TransactionState::Committing(root));
        if is_awaited {
            replica.transaction = TransactionState::Decided(is_committed);
        }
        self.changed.notify_all();
        is_awaited
    }

    fn adopt(&self, replica: &mut LocalReplica, root: wirefs_echo::EchoBlockId) {
        let Some(root) = unpacked(root) else { return };
        replica.root_since = Instant::now();
        // An echo store's `switch_root` cannot fail.
        let _switched = self.echo.switch_root(root);
        // The tree switches to its own root when that is committed.
        let is_own = replica.transaction == TransactionState::Committing(root);
        replica.pending_root = (!is_own).then_some(root);
        self.switch_to_pending_root(replica);
        self.request_read(replica);
    }

    /// Makes the follower switch to the pending root if that is read.
    pub(super) fn switch_to_pending_root(&self, replica: &mut LocalReplica) {
        let Some(root) = replica.pending_root else { return };
        let follower = replica.follower.as_ref().and_then(Weak::upgrade);
        if follower.is_none_or(|follower| follower.switch_to(root)) {
            replica.pending_root = None;
            self.delete_pending_if_unused(replica);
        }
    }

    /// Schedules the reading of the pending root. Not here: its lost blocks arrive in control packets, which
    /// need this lock.
    pub(super) fn request_read(&self, replica: &LocalReplica) {
        if let Some(root) = replica.pending_root {
            self.tasks().read(root);
            self.task_added.notify_all();
        }
    }

    /// Sends packets to a node through the next host. The receiver requests lost ones again.
    pub(super) fn send(&self, replica: &mut LocalReplica, to: ReplicaId, packets: Vec<Vec<u8>>) {
        if let Some(address) = replica.channel.address(to) {
            packets.into_iter().for_each(|packet| self.send_to(replica, address.into(), &packet));
        }
    }

    pub(super) fn send_to(&self, replica: &mut LocalReplica, address: Ipv4Addr, packet: &[u8]) {
        replica.host = replica.host.wrapping_add(1);
        let number = replica.host.checked_rem(replica.hosts.len()).unwrap_or(0);
        if let Some(host) = replica.hosts.get(number) {
            let _sent = self.relay.send(address, *host, packet);
        }
    }

    pub(super) fn copy(&self, replica: &mut LocalReplica, to: ReplicaId, id: BlockId, block: &Bytes) {
        replica.copies_sent += 1;
        let packets = replica.channel.block(to, packed(id), block);
        self.send(replica, to, packets);
    }

    /// Processes a control message.
    pub(super) fn receive(&self, replica: &mut LocalReplica, message: ControlMessage) {
        match message {
            ControlMessage::Hello { from, address, reply, is_live, is_restarted } => {
                if is_restarted {
                    self.handle_input(replica, ReplicaInput::PeerRestarted(from));
                }
                if is_live {
                    self.handle_input(replica, ReplicaInput::PeerFound(from));
                }
                if let Some(reply) = reply {
                    self.send_to(replica, address.into(), &reply);
                }
            }
            ControlMessage::Replication { from, message } => {
                replica.last_received.insert(from, Instant::now());
                self.handle_input(replica, ReplicaInput::Received { from, message });
            }
            ControlMessage::Block { id, block } => {
                let Some(id) = unpacked(id).filter(|id| !replica.tombstones.contains(id)) else { return };
                replica.copies_received += 1;
                if self.echo.accept(id, &block) && self.tasks().block_arrived(id) {
                    self.task_added.notify_all();
                }
                self.changed.notify_all();
            }
        }
    }
}
