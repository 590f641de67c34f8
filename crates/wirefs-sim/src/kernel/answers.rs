//! What a kernel takes in by the answers to its calls.

use super::{Asked, Believed, Kernel, Matter, Place};
use std::time::Duration;
use wirefs_client::call::{Answer, CallId, Entry, PageCache, TreeNodeId};
use wirefs_op::{Kind, Stat, Time};

impl Kernel {
    /// Takes in an answer at `now`.
    pub(crate) fn takes(&mut self, now: Time, id: CallId, answer: &Answer) {
        self.locking.remove(&id);
        match answer {
            Answer::Opened(handle, PageCache::Bypass | PageCache::QuietBypass | PageCache::Avoid)
            | Answer::Created(_, handle, PageCache::Bypass | PageCache::QuietBypass | PageCache::Avoid) => {
                self.bypassing.insert(*handle);
            }
            _ => {}
        }
        let Some(asked) = self.asked.remove(&id) else { return };
        match (&asked.matter, answer) {
            (Matter::Name(parent, name), Answer::Entry(entry)) => {
                self.entry(now, &asked, (*parent, name.clone()), entry);
            }
            (Matter::Name(parent, name), Answer::NoEntry(ttl)) => {
                self.named(now, &asked, (*parent, name.clone()), None, *ttl);
            }
            (Matter::Name(parent, name), _) => {
                self.names.remove(&(*parent, name.clone()));
            }
            (Matter::Node(node), Answer::Attr(stat, ttl)) => self.attributed(now, &asked, *node, stat, *ttl),
            (Matter::Contents(node, offset), Answer::Data(data)) if !asked.is_vain => {
                self.pages.entry(*node).or_default().insert(*offset, data.clone());
            }
            (Matter::Open(_), Answer::Opened(_, PageCache::Keep | PageCache::Quiet)) => {}
            (Matter::Open(node), _) => self.drop_pages(*node),
            (Matter::Write(node, end), Answer::Count(_)) => {
                if let Some((_, size)) = self.dated.get_mut(node) {
                    *size = (*size).max(*end);
                }
                self.doubt_attributes(*node);
            }
            (Matter::Write(node, _), _) => {
                self.drop_pages(*node);
                self.doubt_attributes(*node);
            }
            (Matter::Directory(dir, position), Answer::Listing(listed)) => {
                if let Some(position) = position {
                    self.listings.takes(*dir, *position, listed, asked.is_vain);
                }
                for listed in listed {
                    if let Some(entry) = &listed.entry {
                        self.entry(now, &asked, (*dir, listed.name.clone()), entry);
                    }
                }
            }
            (Matter::Change { .. }, _) => self.changed(now, &asked, answer),
            (Matter::Rename { from, to, is_exchange }, Answer::Done) => {
                self.renamed(&asked, from, to, *is_exchange)
            }
            (Matter::Node(_) | Matter::Contents(..) | Matter::Directory(..) | Matter::Rename { .. }, _) => {}
        }
    }

    /// An own change of names or attributes.
    fn changed(&mut self, now: Time, asked: &Asked, answer: &Answer) {
        let Matter::Change { names, nodes, made } = &asked.matter else { return };
        let failed = matches!(answer, Answer::Fail(_));
        for name in names {
            if !failed {
                self.listings.changed(name.0);
            }
            // What loses a name changes.
            if let Some(node) = self.names.remove(name).and_then(|name| name.what).filter(|_| !failed) {
                self.doubt_attributes(node);
            }
        }
        for node in nodes {
            self.doubt_attributes(*node);
        }
        // What is made is there when the answer comes: its own attributes are of then.
        if let (Answer::Entry(entry) | Answer::Created(entry, ..), Some(place)) = (answer, made) {
            self.entry(now, asked, place.clone(), entry);
        }
        if let (Answer::Attr(stat, ttl), [node]) = (answer, nodes.as_slice()) {
            self.dated.insert(*node, (stat.mtime, stat.size));
            self.believe(now, *node, stat, *ttl);
        }
    }

    fn renamed(&mut self, asked: &Asked, from: &Place, to: &Place, is_exchange: bool) {
        for (dir, _) in [from, to] {
            self.listings.changed(*dir);
        }
        let (moved, other) = (self.names.remove(from), self.names.remove(to));
        let nodes = [moved, other].map(|name| name.and_then(|name| name.what));
        for node in [Some(from.0), Some(to.0)].into_iter().chain(nodes).flatten() {
            self.doubt_attributes(node);
        }
        if let Some(moved) = moved.filter(|_| !asked.forgotten.contains(to)) {
            self.names.insert(to.clone(), moved);
        }
        if let Some(other) = other.filter(|_| is_exchange && !asked.forgotten.contains(from)) {
            self.names.insert(from.clone(), other);
        }
    }

    fn entry(&mut self, now: Time, asked: &Asked, place: Place, entry: &Entry) {
        let is_new = self.ids.insert(entry.node, entry.stat.id).is_none();
        if entry.stat.kind == Kind::Directory {
            // A directory has one name: the kernel moves that which it knows (`d_splice_alias`, fs/dcache.c).
            self.names.retain(|_, believed| believed.what != Some(entry.node));
        }
        self.named(now, asked, place, Some(entry.node), entry.entry_ttl);
        let is_behind = asked.forgotten_behind.contains(&entry.node);
        if is_behind {
            self.attributes.remove(&entry.node);
        } else if is_new {
            self.dates(entry.node, &entry.stat);
            self.believe(now, entry.node, &entry.stat, entry.attr_ttl);
        } else {
            self.attributed(now, asked, entry.node, &entry.stat, entry.attr_ttl);
        }
    }

    fn named(&mut self, now: Time, asked: &Asked, place: Place, what: Option<TreeNodeId>, ttl: Duration) {
        if asked.is_vain || ttl.is_zero() || asked.forgotten.contains(&place) {
            self.names.remove(&place);
        } else {
            self.names.insert(place, Believed { what, until: now + ttl });
        }
    }

    /// Attributes from before the node was forgotten do not count.
    fn attributed(&mut self, now: Time, asked: &Asked, node: TreeNodeId, stat: &Stat, ttl: Duration) {
        if self.forgotten.get(&node).is_none_or(|at| *at <= asked.since) {
            self.dates(node, stat);
            self.believe(now, node, stat, ttl);
        }
    }

    /// Pages from under other times or another size go.
    fn dates(&mut self, node: TreeNodeId, stat: &Stat) {
        let dated = (stat.mtime, stat.size);
        if self.dated.insert(node, dated).is_some_and(|before| before != dated) {
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
