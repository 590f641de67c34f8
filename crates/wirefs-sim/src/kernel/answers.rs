//! The effect of answers on a kernel's cache.

use super::{Believed, Kernel, Matter, PendingCall, Place};
use std::time::Duration;
use wirefs_client::call::{Answer, CallId, Entry, PageCache, TreeNodeId};
use wirefs_op::{Kind, Stat, Time};

impl Kernel {
    /// Takes an answer.
    pub(crate) fn takes(&mut self, now: Time, id: CallId, answer: &Answer) {
        self.locking.remove(&id);
        match answer {
            Answer::Opened(handle, PageCache::Bypass | PageCache::QuietBypass | PageCache::Avoid)
            | Answer::Created(_, handle, PageCache::Bypass | PageCache::QuietBypass | PageCache::Avoid) => {
                self.direct_io.insert(*handle);
            }
            _ => {}
        }
        let Some(pending_call) = self.pending_call.remove(&id) else { return };
        match (&pending_call.matter, answer) {
            (Matter::Name(parent, name), Answer::Entry(entry)) => {
                self.entry(now, &pending_call, (*parent, name.clone()), entry);
            }
            (Matter::Name(parent, name), Answer::NoEntry(ttl)) => {
                self.named(now, &pending_call, (*parent, name.clone()), None, *ttl);
            }
            (Matter::Name(parent, name), _) => {
                self.names.remove(&(*parent, name.clone()));
            }
            (Matter::Node(node), Answer::Attr(stat, ttl)) => {
                self.attributed(now, &pending_call, *node, stat, *ttl)
            }
            (Matter::Contents(node, offset), Answer::Data(data)) if !pending_call.is_uncached => {
                self.pages.entry(*node).or_default().insert(*offset, data.clone());
            }
            (Matter::Open(_), Answer::Opened(_, PageCache::Keep | PageCache::Quiet)) => {}
            (Matter::Open(node), _) => self.drop_pages(*node),
            (Matter::Write(node, end), Answer::Count(_)) => {
                if let Some((_, size)) = self.page_times.get_mut(node) {
                    *size = (*size).max(*end);
                }
                self.expire_attributes(*node);
            }
            (Matter::Write(node, _), _) => {
                self.drop_pages(*node);
                self.expire_attributes(*node);
            }
            (Matter::Directory(dir, position), Answer::Listing(listed)) => {
                if let Some(position) = position {
                    self.listings.takes(*dir, *position, listed, pending_call.is_uncached);
                }
                for listed in listed {
                    if let Some(entry) = &listed.entry {
                        self.entry(now, &pending_call, (*dir, listed.name.clone()), entry);
                    }
                }
            }
            (Matter::Change { .. }, _) => self.changed(now, &pending_call, answer),
            (Matter::Rename { from, to, is_exchange }, Answer::Done) => {
                self.renamed(&pending_call, from, to, *is_exchange)
            }
            (Matter::Node(_) | Matter::Contents(..) | Matter::Directory(..) | Matter::Rename { .. }, _) => {}
        }
    }

    /// Applies an own change of names or attributes.
    fn changed(&mut self, now: Time, pending_call: &PendingCall, answer: &Answer) {
        let Matter::Change { names, nodes, made } = &pending_call.matter else { return };
        let failed = matches!(answer, Answer::Fail(_));
        for name in names {
            if !failed {
                self.listings.changed(name.0);
            }
            // The change also affects the object that loses a name.
            if let Some(node) = self.names.remove(name).and_then(|name| name.what).filter(|_| !failed) {
                self.expire_attributes(node);
            }
        }
        for node in nodes {
            self.expire_attributes(*node);
        }
        // A created object exists when the answer arrives, so its attributes are of that time.
        if let (Answer::Entry(entry) | Answer::Created(entry, ..), Some(place)) = (answer, made) {
            self.entry(now, pending_call, place.clone(), entry);
        }
        if let (Answer::Attr(stat, ttl), [node]) = (answer, nodes.as_slice()) {
            self.page_times.insert(*node, (stat.mtime, stat.size));
            self.believe(now, *node, stat, *ttl);
        }
    }

    fn renamed(&mut self, pending_call: &PendingCall, from: &Place, to: &Place, is_exchange: bool) {
        for (dir, _) in [from, to] {
            self.listings.changed(*dir);
        }
        let (moved, other) = (self.names.remove(from), self.names.remove(to));
        let nodes = [moved, other].map(|name| name.and_then(|name| name.what));
        for node in [Some(from.0), Some(to.0)].into_iter().chain(nodes).flatten() {
            self.expire_attributes(node);
        }
        if let Some(moved) = moved.filter(|_| !pending_call.forgotten.contains(to)) {
            self.names.insert(to.clone(), moved);
        }
        if let Some(other) = other.filter(|_| is_exchange && !pending_call.forgotten.contains(from)) {
            self.names.insert(from.clone(), other);
        }
    }

    fn entry(&mut self, now: Time, pending_call: &PendingCall, place: Place, entry: &Entry) {
        let is_new = self.ids.insert(entry.node, entry.stat.id).is_none();
        if entry.stat.kind == Kind::Directory {
            // A directory has one name: the kernel moves the cached one (`d_splice_alias`, fs/dcache.c).
            self.names.retain(|_, believed| believed.what != Some(entry.node));
        }
        self.named(now, pending_call, place, Some(entry.node), entry.entry_ttl);
        let is_behind = pending_call.forgotten_behind.contains(&entry.node);
        if is_behind {
            self.attributes.remove(&entry.node);
        } else if is_new {
            self.check_page_times(entry.node, &entry.stat);
            self.believe(now, entry.node, &entry.stat, entry.attr_ttl);
        } else {
            self.attributed(now, pending_call, entry.node, &entry.stat, entry.attr_ttl);
        }
    }

    fn named(
        &mut self,
        now: Time,
        pending_call: &PendingCall,
        place: Place,
        what: Option<TreeNodeId>,
        ttl: Duration,
    ) {
        if pending_call.is_uncached || ttl.is_zero() || pending_call.forgotten.contains(&place) {
            self.names.remove(&place);
        } else {
            self.names.insert(place, Believed { what, until: now + ttl });
        }
    }

    /// Caches attributes, unless the node was invalidated since the call.
    fn attributed(
        &mut self,
        now: Time,
        pending_call: &PendingCall,
        node: TreeNodeId,
        stat: &Stat,
        ttl: Duration,
    ) {
        if self.forgotten.get(&node).is_none_or(|at| *at <= pending_call.since) {
            self.check_page_times(node, stat);
            self.believe(now, node, stat, ttl);
        }
    }

    /// Drops pages of other times or another size.
    fn check_page_times(&mut self, node: TreeNodeId, stat: &Stat) {
        let page_times = (stat.mtime, stat.size);
        if self.page_times.insert(node, page_times).is_some_and(|before| before != page_times) {
            self.drop_pages(node);
        }
    }

    fn believe(&mut self, now: Time, node: TreeNodeId, stat: &Stat, ttl: Duration) {
        if ttl.is_zero() {
            self.attributes.remove(&node);
        } else {
            self.attributes.insert(node, Believed { what: *stat, until: now + ttl });
        }
    }
}
