//! The connection, and requests that outlive one.

use std::sync::Arc;
use std::time::Instant;

use wirefs_op::{Errno, Reply, Request, Stat};
use wirefs_server::{Replies, SessionKey, Stopped};

use super::order::Ticket;
use super::{Failure, SftpTree, lock};
use crate::limits::{RECONNECT_MAX, RECONNECT_PAUSE};
use crate::remote::Remote;

/// Tries of one request, each on another connection.
const TRIES_MAX: usize = 3;

/// The connection as it is now.
pub(super) struct Connection {
    remote: Arc<Remote>,
    /// Counts connections from 1.
    number: u64,
    /// When the last attempt to connect again was given up.
    given_up: Option<Instant>,
}

impl Connection {
    pub(super) fn new(remote: Arc<Remote>) -> Connection {
        Connection { remote, number: 1, given_up: None }
    }
}

/// Replies, with a note whether any was sent.
pub(super) struct WatchedReplies<'a> {
    replies: &'a mut dyn Replies,
    has_sent: bool,
}

impl Replies for WatchedReplies<'_> {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.has_sent = true;
        self.replies.send(reply)
    }

    fn is_stopped(&self) -> bool {
        self.replies.is_stopped()
    }

    fn release_slot(&mut self) {
        self.replies.release_slot();
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        self.replies.grant(stats);
    }

    fn wait(&mut self) {
        self.replies.wait();
    }
}

impl SftpTree {
    /// Serves a request. A request that may be repeated outlives lost connections.
    pub(super) fn serve_until_reached(
        &self,
        session: SessionKey,
        request: &Request,
        replies: &mut dyn Replies,
    ) {
        let ticket = request.is_change().then(|| self.order.begin());
        let mut replies = WatchedReplies { replies, has_sent: false };
        for tries in 1.. {
            let outcome = self.try_once(session, request, ticket.as_ref(), &mut replies);
            let may_repeat = request.traits().is_repeatable && tries < TRIES_MAX && !replies.has_sent;
            match outcome {
                Err(Failure::Lost) if may_repeat && !replies.is_stopped() => {}
                Err(failure @ (Failure::Errno(_) | Failure::Lost)) => {
                    // A closed connection needs no reply.
                    let _gone = replies.send(Reply::Error(failure.errno().into()));
                    return;
                }
                Ok(()) | Err(Failure::Stopped) => return,
            }
        }
    }

    fn try_once(
        &self,
        session: SessionKey,
        request: &Request,
        ticket: Option<&Ticket<'_>>,
        replies: &mut WatchedReplies<'_>,
    ) -> Result<(), Failure> {
        if let Some(ticket) = ticket {
            let (_, number) = self.connected()?;
            ticket.wait_for_earlier(number);
        }
        self.serve_once(session, request, replies)
    }

    /// Returns the server; dials it again if its connection is lost.
    pub(super) fn remote(&self) -> Result<Arc<Remote>, Failure> {
        self.connected().map(|(remote, _)| remote)
    }

    fn connected(&self) -> Result<(Arc<Remote>, u64), Failure> {
        let mut connection = lock(&self.connection);
        if connection.remote.is_lost() {
            let is_resting = connection.given_up.is_some_and(|at| at.elapsed() < RECONNECT_PAUSE);
            if is_resting {
                return Err(Errno::HostDown.into());
            }
            let began = Instant::now();
            loop {
                match Remote::connect(&*self.dial, false) {
                    Ok(remote) => {
                        let number = connection.number + 1;
                        *connection = Connection { remote, number, given_up: None };
                        break;
                    }
                    Err(_) if began.elapsed() < RECONNECT_MAX => std::thread::sleep(RECONNECT_PAUSE),
                    Err(_) => {
                        connection.given_up = Some(Instant::now());
                        return Err(Errno::HostDown.into());
                    }
                }
            }
        }
        Ok((Arc::clone(&connection.remote), connection.number))
    }
}
