//! A server that came later: it waits until nobody is alone at the first one.

use super::super::log;
use super::super::shared::Shared;
use super::first::BEGIN;
use super::{Mail, WAITING_MAX};
use rustix::net::sockopt::socket_peercred;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wirefs_server::{Input, Neighbours, PATIENCE, RECOVERY};

pub(super) struct Second {
    stream: UnixStream,
    /// The server was let on.
    is_on: bool,
    /// It is not waited for longer than that.
    until: Instant,
    waiting: Vec<u64>,
}

impl Second {
    pub(super) fn new(stream: UnixStream) -> io::Result<Second> {
        stream.set_nonblocking(true)?;
        let until = Instant::now() + patience_with(&stream);
        Ok(Second { stream, is_on: false, until, waiting: Vec::new() })
    }

    /// Who was first before is gone, and another one is now.
    pub(super) fn after(self, before: Second) -> Second {
        Second { stream: self.stream, ..before }
    }

    /// Until the first server is gone, of which it gives back what is known. `None`: this one ends.
    pub(super) fn run(mut self, shared: &Arc<Shared>) -> Option<Second> {
        // Those that another one was told before.
        let waiting = std::mem::take(&mut self.waiting);
        if !self.tell(Mail { waiting, ..Mail::default() }) {
            return Some(self);
        }
        loop {
            let until = (!self.is_on).then_some(self.until);
            let readable = shared.neighbourhood.wait(&[self.stream.as_fd()], until);
            let mail = shared.neighbourhood.collect();
            if let Some(is_settled) = mail.ending {
                if is_settled {
                    // Who is gone does not need it.
                    let _told = (&self.stream).write_all(&0_u64.to_le_bytes());
                }
                return None;
            }
            if !self.tell(mail) || (readable.contains(&true) && !self.listen(shared)) {
                return Some(self);
            }
            if !self.is_on && Instant::now() >= self.until {
                log::line(format_args!(
                    "another server of this directory does not answer; going on without it"
                ));
                self.begin(shared);
            }
        }
    }

    /// Tells whose clients wait here; false when it is gone.
    fn tell(&mut self, mail: Mail) -> bool {
        let known = std::mem::take(&mut self.waiting);
        let new: Vec<u64> = mail.waiting.into_iter().filter(|word| !known.contains(word)).collect();
        let is_told = new.iter().all(|word| (&self.stream).write_all(&word.to_le_bytes()).is_ok());
        self.waiting = known.into_iter().chain(new).take(WAITING_MAX).collect();
        is_told
    }

    /// Takes what it says; false when it is gone.
    fn listen(&mut self, shared: &Arc<Shared>) -> bool {
        let mut said = [0; 64];
        match (&self.stream).read(&mut said) {
            Ok(0) => false,
            Ok(count) => {
                if !self.is_on && said.iter().take(count).any(|byte| *byte == BEGIN) {
                    self.begin(shared);
                }
                true
            }
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        }
    }

    fn begin(&mut self, shared: &Arc<Shared>) {
        self.is_on = true;
        let_on(shared);
    }
}

/// Lets clients attach, none of whom is alone.
pub(super) fn let_on(shared: &Arc<Shared>) {
    shared.handle(Input::Neighbours(Neighbours::There));
}

/// How long somebody who has the name may take to let this server begin. Who is not this user, nor root, may have taken the
/// name only to be waited for.
fn patience_with(stream: &UnixStream) -> Duration {
    let peer = socket_peercred(stream).map(|peer| peer.uid);
    let is_trusted = peer.is_ok_and(|uid| uid.is_root() || uid == rustix::process::geteuid());
    if is_trusted { PATIENCE } else { RECOVERY }
}
