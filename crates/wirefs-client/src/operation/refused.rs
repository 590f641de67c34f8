//! Changes that the server did not take though their programs have gone on: handed to the driver with their data, so that they can be
//! kept.

use crate::core::{Client, Output};
use crate::operation::{Pending, give_up};
use crate::requests::{GivenUp, Outstanding};
use wirefs_op::message::put::Rput;
use wirefs_op::{Errno, NOTAG, Reply, Request};

/// The server refused a change, or took only a part of what was to be written.
pub(crate) fn watch(client: &mut Client, outstanding: &Outstanding, reply: &Reply) {
    let errno = match (reply, &outstanding.request, &outstanding.pending) {
        (Reply::Error(error), ..) => error.errno,
        (Reply::Put(Rput { count, .. }), Request::Put(put), Pending::Write(_))
            if (*count as usize) < put.data.0.len() =>
        {
            Errno::NoSpace
        }
        _ => return,
    };
    keep(client, &outstanding.pending, outstanding.number, &outstanding.request, Some(errno));
}

/// Nobody will tell any more whether the server has done it.
pub(crate) fn given_up(client: &mut Client, given_up: GivenUp) {
    let GivenUp { request, pending, number } = given_up;
    keep(client, &pending, number, &request, None);
    give_up(client, pending, Errno::Io);
}

fn keep(
    client: &mut Client,
    pending: &Pending,
    number: Option<u64>,
    request: &Request,
    errno: Option<Errno>,
) {
    let is_journaled = match pending {
        Pending::Confirm(_) => true,
        Pending::Write(writing) => writing.is_background() && client.config.journal,
        _ => false,
    };
    let Some(number) = number.filter(|_| is_journaled) else { return };
    client.output(Output::Refused(number, request.encode(NOTAG), errno));
    // Of the others it is noted where what they have shown is taken back.
    if let (Pending::Write(_), Request::Put(put)) = (pending, request) {
        client.note_late(request.name(), put.target.path.clone(), errno.unwrap_or(Errno::Io));
    }
}
