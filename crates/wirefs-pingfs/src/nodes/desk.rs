//! The machine and its letters: what it wants is done here, as far as nobody has to wait for it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Weak;
use std::time::{Duration, Instant};

use bytes::Bytes;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::store::BlockStore;
use wirefs_blocks::transactions::RootFollower;
use wirefs_echo::together::post::{Letter, Post};
use wirefs_echo::together::{Input, NodeId, Output, Together};

use super::Commons;
use super::errands::Check;
use crate::limits::{FREED_MAX, TOMBS_MAX};
use crate::store::{packed, unpacked};

/// Where the change of this node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// There is none.
    None,
    /// It waits for its turn.
    Wanted,
    /// It is made, on this root.
    Running(Option<BlockId>),
    /// The others are to take its root.
    Agreeing(BlockId),
    /// They did, or it came to nothing.
    Agreed(bool),
}

/// What the lock protects.
pub(super) struct Desk {
    pub(super) machine: Together,
    pub(super) post: Post,
    pub(super) turn: Turn,
    /// The last change that wanted a turn waited in vain.
    pub(super) is_cut_off: bool,
    /// The blocks of the change under way.
    pub(super) fresh: BTreeMap<BlockId, Bytes>,
    /// Let go of here, and to be told with the next root.
    pub(super) freed: VecDeque<BlockId>,
    /// What of these the root under way tells.
    pub(super) told: Vec<BlockId>,
    /// To be let go of when the turn has ended.
    pub(super) dying: BTreeSet<BlockId>,
    tombs: BTreeSet<BlockId>,
    tombs_in_order: VecDeque<BlockId>,
    pub(super) follower: Option<Weak<dyn RootFollower>>,
    /// The root that the follower is to go over to when it is read.
    owed: Option<BlockId>,
    /// When the present root came.
    pub(super) root_at: Instant,
    pub(super) has_left: bool,
    /// Where to look for others.
    pub(super) named: Vec<Ipv4Addr>,
    /// When something was heard of each.
    pub(super) heard: BTreeMap<NodeId, Instant>,
    hosts: Vec<Ipv4Addr>,
    host: usize,
    pub(super) retry: Duration,
    pub(super) copied: u64,
    pub(super) taken: u64,
}

impl Desk {
    pub(super) fn new(machine: Together, post: Post, named: Vec<Ipv4Addr>, retry: Duration) -> Desk {
        Desk {
            machine,
            post,
            turn: Turn::None,
            is_cut_off: false,
            fresh: BTreeMap::new(),
            freed: VecDeque::new(),
            told: Vec::new(),
            dying: BTreeSet::new(),
            tombs: BTreeSet::new(),
            tombs_in_order: VecDeque::new(),
            follower: None,
            owed: None,
            root_at: Instant::now(),
            has_left: false,
            named,
            heard: BTreeMap::new(),
            hosts: Vec::new(),
            host: 0,
            retry,
            copied: 0,
            taken: 0,
        }
    }

    /// The hosts that letters go by.
    pub(super) fn go_by(&mut self, hosts: Vec<IpAddr>) {
        self.hosts = hosts
            .into_iter()
            .filter_map(|host| match host {
                IpAddr::V4(host) => Some(host),
                IpAddr::V6(_) => None,
            })
            .collect();
    }

    /// Has one more block told with the next root.
    pub(super) fn free_later(&mut self, id: BlockId) {
        if self.freed.len() < FREED_MAX {
            self.freed.push_back(id);
        }
    }

    fn bury(&mut self, id: BlockId) {
        if self.tombs.insert(id) {
            self.tombs_in_order.push_back(id);
        }
        if self.tombs_in_order.len() > TOMBS_MAX
            && let Some(oldest) = self.tombs_in_order.pop_front()
        {
            self.tombs.remove(&oldest);
        }
    }
}

fn all_unpacked(ids: impl IntoIterator<Item = wirefs_echo::BlockId>) -> Vec<BlockId> {
    ids.into_iter().filter_map(unpacked).collect()
}

impl Commons {
    /// Tells the machine what happened, and does what it wants.
    pub(super) fn work(&self, desk: &mut Desk, input: Input) {
        desk.machine.handle(self.now(), input);
        while let Some(output) = desk.machine.poll() {
            self.obey(desk, output);
        }
    }

    pub(super) fn obey(&self, desk: &mut Desk, output: Output) {
        match output {
            Output::Send { to, message } => {
                let packets = desk.post.message(to, &message);
                self.send(desk, to, packets);
            }
            Output::Copy { to, ids } => {
                let ids = all_unpacked(ids);
                let (fresh, older): (Vec<BlockId>, Vec<BlockId>) =
                    ids.into_iter().partition(|id| desk.fresh.contains_key(id));
                for id in fresh {
                    if let Some(block) = desk.fresh.get(&id).cloned() {
                        self.copy(desk, to, id, &block);
                    }
                }
                self.errands().copy(to, older);
                self.called.notify_all();
            }
            Output::Run { on } => {
                desk.is_cut_off = false;
                match desk.turn {
                    Turn::Wanted => {
                        desk.turn = Turn::Running(on.and_then(unpacked));
                        self.changed.notify_all();
                    }
                    // Whoever wanted it has gone.
                    Turn::None | Turn::Running(_) | Turn::Agreeing(_) | Turn::Agreed(_) => {
                        desk.machine.handle(self.now(), Input::Made(None));
                    }
                }
            }
            Output::Check { root, made } => {
                if let Some(root) = unpacked(root) {
                    let check = Check { root, made: made.map(all_unpacked) };
                    self.errands().check(check, desk.retry);
                    self.called.notify_all();
                }
            }
            Output::Adopt { root } => self.adopt(desk, root),
            Output::Free { ids } => {
                desk.dying.extend(all_unpacked(ids));
                self.bury_if_unshown(desk);
            }
            Output::Settled { root } => {
                desk.fresh.clear();
                desk.told.clear();
                if !self.end_agreeing(desk, root, true) {
                    // Nobody waits for it any more, so nobody goes over to it either; by now to what followed from it.
                    desk.owed = desk.machine.root().and_then(unpacked);
                    self.switch_to(desk);
                    self.have_read(desk);
                }
            }
            Output::Undone { root } => {
                let made: Vec<BlockId> = std::mem::take(&mut desk.fresh).into_keys().collect();
                self.echo.deregister(&made);
                for id in std::mem::take(&mut desk.told) {
                    desk.free_later(id);
                }
                let _is_awaited = self.end_agreeing(desk, root, false);
            }
            Output::Left => {
                desk.has_left = true;
                self.changed.notify_all();
            }
        }
    }

    /// Lets go of what no root reaches that may still count.
    fn bury(&self, desk: &mut Desk) {
        let ids: Vec<BlockId> = std::mem::take(&mut desk.dying).into_iter().collect();
        ids.iter().for_each(|id| desk.bury(*id));
        self.echo.deregister(&ids);
    }

    /// The same, unless the tree shows what was before, which whoever reads it needs: until its own change has ended, or the present
    /// root is read.
    pub(super) fn bury_if_unshown(&self, desk: &mut Desk) {
        let is_behind = desk.owed.is_some() && desk.dying.len() <= FREED_MAX;
        let is_shown = is_behind || matches!(desk.turn, Turn::Agreeing(_) | Turn::Agreed(_));
        if !is_shown && !desk.dying.is_empty() {
            self.bury(desk);
        }
    }

    /// Whether the change under way is the one that waits for that.
    fn end_agreeing(&self, desk: &mut Desk, root: wirefs_echo::BlockId, counts: bool) -> bool {
        let is_awaited = unpacked(root).is_some_and(|root| desk.turn == Turn::Agreeing(root));
        if is_awaited {
            desk.turn = Turn::Agreed(counts);
        }
        self.changed.notify_all();
        is_awaited
    }

    fn adopt(&self, desk: &mut Desk, root: wirefs_echo::BlockId) {
        let Some(root) = unpacked(root) else { return };
        desk.root_at = Instant::now();
        // It cannot fail: a store in pings only notes it.
        let _noted = self.echo.switch_root(root);
        // To the own one the tree goes over when it counts.
        let is_own = desk.turn == Turn::Agreeing(root);
        desk.owed = (!is_own).then_some(root);
        self.switch_to(desk);
        self.have_read(desk);
    }

    /// Has the follower go over to the root that it owes, if that is read.
    pub(super) fn switch_to(&self, desk: &mut Desk) {
        let Some(root) = desk.owed else { return };
        let follower = desk.follower.as_ref().and_then(Weak::upgrade);
        if follower.is_none_or(|follower| follower.switch_to(root)) {
            desk.owed = None;
            self.bury_if_unshown(desk);
        }
    }

    /// Has the root read that the follower owes. Not here: what is lost of it comes in letters, and these while the desk is free.
    pub(super) fn have_read(&self, desk: &Desk) {
        if let Some(root) = desk.owed {
            self.errands().read(root);
            self.called.notify_all();
        }
    }

    /// Sends packets to a node by way of the next host. What is lost is sent again by whoever needs it.
    pub(super) fn send(&self, desk: &mut Desk, to: NodeId, packets: Vec<Vec<u8>>) {
        if let Some(address) = desk.post.address(to) {
            packets.into_iter().for_each(|packet| self.send_to(desk, address.into(), &packet));
        }
    }

    pub(super) fn send_to(&self, desk: &mut Desk, address: Ipv4Addr, packet: &[u8]) {
        desk.host = desk.host.wrapping_add(1);
        let number = desk.host.checked_rem(desk.hosts.len()).unwrap_or(0);
        if let Some(host) = desk.hosts.get(number) {
            let _sent = self.courier.send(address, *host, packet);
        }
    }

    pub(super) fn copy(&self, desk: &mut Desk, to: NodeId, id: BlockId, block: &Bytes) {
        desk.copied += 1;
        let packets = desk.post.block(to, packed(id), block);
        self.send(desk, to, packets);
    }

    /// Hears a letter.
    pub(super) fn hear(&self, desk: &mut Desk, letter: Letter) {
        match letter {
            Letter::Hello { from, address, reply, is_met, is_reborn } => {
                if is_reborn {
                    self.work(desk, Input::Reborn(from));
                }
                if is_met {
                    self.work(desk, Input::Met(from));
                }
                if let Some(reply) = reply {
                    self.send_to(desk, address.into(), &reply);
                }
            }
            Letter::Message { from, message } => {
                desk.heard.insert(from, Instant::now());
                self.work(desk, Input::Heard { from, message });
            }
            Letter::Block { id, block } => {
                let Some(id) = unpacked(id).filter(|id| !desk.tombs.contains(id)) else { return };
                desk.taken += 1;
                if self.echo.accept(id, &block) && self.errands().came(id) {
                    self.called.notify_all();
                }
                self.changed.notify_all();
            }
        }
    }
}
