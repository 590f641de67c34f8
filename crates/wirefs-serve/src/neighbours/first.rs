//! The server that has the name: it is asked by those that come later.

use super::super::shared::Shared;
use super::word_of;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Instant;
use wirefs_server::{Input, Neighbours, RECOVERY};

/// Servers that are spoken with at a time; others are turned away, and go on without an answer after a while.
const VISITORS_MAX: usize = 256;
/// What is said to those that may begin.
pub(super) const BEGIN: u8 = b'g';

/// A server that came later.
struct Visitor {
    stream: UnixStream,
    /// It was told that it may begin.
    begins: bool,
    /// It has said that nobody believes anything of it.
    is_settled: bool,
    word: [u8; 8],
    bytes: usize,
}

pub(super) struct First {
    listener: UnixListener,
    visitors: Vec<Visitor>,
    /// Until when clients of servers that are gone may believe their leases.
    believed_until: Vec<Instant>,
}

impl First {
    pub(super) fn new(listener: UnixListener) -> io::Result<First> {
        listener.set_nonblocking(true)?;
        Ok(First { listener, visitors: Vec::new(), believed_until: Vec::new() })
    }

    /// Another one was first, and is gone.
    pub(super) fn after_another(self, shared: &Arc<Shared>) -> First {
        shared.handle(Input::Neighbours(Neighbours::There));
        First { believed_until: vec![Instant::now() + RECOVERY], ..self }
    }

    /// Until the server ends.
    pub(super) fn run(mut self, shared: &Arc<Shared>) {
        loop {
            let mut sources = vec![self.listener.as_fd()];
            sources.extend(self.visitors.iter().map(|visitor| visitor.stream.as_fd()));
            let readable = shared.neighbourhood.wait(&sources, self.believed_until.iter().min().copied());
            let mail = shared.neighbourhood.collect();
            if mail.ending.is_some() {
                return;
            }
            let before = self.count();
            if mail.gives_way {
                self.visitors.retain_mut(Visitor::begin);
            }
            self.listen_to_visitors(shared, readable.get(1..).unwrap_or_default());
            self.believed_until.retain(|until| *until > Instant::now());
            if before > 0 && self.count() == 0 {
                shared.handle(Input::Neighbours(Neighbours::None));
            }
            if readable.first().is_some_and(|readable| *readable) {
                self.admit(shared);
            }
        }
    }

    /// Neighbours that are there, or count as if they were.
    fn count(&self) -> usize {
        self.visitors.len() + self.believed_until.len()
    }

    fn listen_to_visitors(&mut self, shared: &Arc<Shared>, readable: &[bool]) {
        let mut readable = readable.iter().copied();
        let believed_until = &mut self.believed_until;
        self.visitors.retain_mut(|visitor| {
            if !readable.next().unwrap_or(false) || visitor.listen(shared) {
                return true;
            }
            if visitor.begins && !visitor.is_settled {
                believed_until.push(Instant::now() + RECOVERY);
            }
            false
        });
    }

    fn admit(&mut self, shared: &Arc<Shared>) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.visitors.len() >= VISITORS_MAX || stream.set_nonblocking(true).is_err() {
                continue;
            }
            let visitor = Visitor { stream, begins: false, is_settled: false, word: [0; 8], bytes: 0 };
            self.visitors.push(visitor);
            shared.handle(Input::Neighbours(Neighbours::Coming));
        }
    }
}

impl Visitor {
    /// Tells it that it may begin; false when it is gone.
    fn begin(&mut self) -> bool {
        self.begins || {
            self.begins = true;
            (&self.stream).write_all(&[BEGIN]).is_ok()
        }
    }

    /// Takes what it says; false when it is gone.
    fn listen(&mut self, shared: &Arc<Shared>) -> bool {
        loop {
            let Some(room) = self.word.get_mut(self.bytes..) else { return false };
            match (&self.stream).read(room) {
                Ok(0) => return false,
                Ok(count) => self.bytes += count,
                Err(error) => {
                    return matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
                }
            }
            if self.bytes == self.word.len() {
                self.bytes = 0;
                self.told(shared, u64::from_le_bytes(self.word));
            }
        }
    }

    fn told(&mut self, shared: &Arc<Shared>, word: u64) {
        if word == 0 {
            self.is_settled = true;
            return;
        }
        let found = shared.core().sessions.ids().find(|session| word_of(session) == word);
        if let Some(session) = found {
            shared.handle(Input::Moved(session));
        }
    }
}
