//! Barriers (PROTOCOL.md, "Barriers"): changes of an object that are sent after a barrier reach the server's disk only
//! after the changes before it. No call waits for a barrier.

use crate::call::Handle;
use crate::output::{Lane, Outputs};
use crate::pending::{Barrier, Pending};
use crate::requests::Requests;
use crate::sending::Sender;
use crate::view::View;
use wirefs_cache::TreeNodeId;
use wirefs_op::message::put::{PutMode, Tput};
use wirefs_op::message::target::NOFD;
use wirefs_op::wire::Data;
use wirefs_op::{Errno, NOTAG, Request, SetStat};

/// Sends a barrier for an object.
///
/// # Cost
/// 0 round trips. At the server, all changes behind it wait for its disk.
pub(crate) fn send(
    sender: &mut Sender<'_>,
    (node, handle): (TreeNodeId, Option<Handle>),
    (journal, database): (TreeNodeId, TreeNodeId),
) -> Result<(), Errno> {
    let target = sender.view.target(node, handle)?;
    let mode = PutMode::SYNC.and_if(target.fd != NOFD, PutMode::MORE);
    let (set, data) = (SetStat::default(), Data::default());
    let put = Tput { target, mode, create: None, set, offset: 0, data };
    sender.view.exclusive.unconfirmed.issued(0, 0);
    sender.send(Request::Put(put), Pending::Barrier(Barrier { journal, database }));
    Ok(())
}

pub(crate) fn finish(view: &mut View) {
    view.exclusive.unconfirmed.answered();
}

/// Takes in that a barrier failed, so the server has refused the changes after it. The program has gone on; it gets the
/// error from its next call that reports errors of the journal or the database.
pub(crate) fn failed(
    view: &mut View,
    requests: &mut Requests,
    outputs: &mut Outputs,
    barrier: Barrier,
    errno: Errno,
) {
    view.exclusive.unconfirmed.answered();
    if let Some(heard) = requests.barrier_failed().filter(|_| requests.link.is_up()) {
        view.transmit(requests, outputs, heard.encode(NOTAG), Lane::Changes);
    }
    for node in [barrier.journal, barrier.database] {
        if let Some(path) = view.names.path(node) {
            view.note_late("sync", path, errno);
        }
        view.files.write_failed(node, errno);
    }
}
