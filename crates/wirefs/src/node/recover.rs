//! Recovery of journals of nodes' mounts, by the node's process, which has the table.

use wirefs_mount::{PendingJournalState, pending_journals};

use super::control::{NodeClient, NodeRequest};
use crate::failure::failure;
use crate::mount::JOURNALS;
use crate::recover::Outcome;
use crate::user_dirs;

/// Returns whether a source is a mountpoint, as in `/net/linus2`; no other source begins with `/`.
pub(crate) fn is_place(source: &[u8]) -> bool {
    source.first() == Some(&b'/')
}

/// Has this user's node send the pending changes of mounts at these mountpoints.
///
/// # Errors
/// Fails if the directory of journals is unknown.
pub(crate) fn recover(places: &[String]) -> anyhow::Result<Vec<Outcome>> {
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let (mut outcomes, why) = match ask(places) {
        Ok(outcomes) => (outcomes, "the node is offline; the changes are sent when it returns"),
        Err(why) => (Vec::new(), why),
    };
    let left = pending_journals(&user_dirs::state_dir()?.join(JOURNALS));
    for journal in left {
        let PendingJournalState::Pending { source, .. } = journal.state else { continue };
        let dir = journal.dir.display().to_string();
        if places.contains(&source) && !outcomes.iter().any(|outcome| outcome.is_about(&source, &dir)) {
            let why = failure(why, "start the node of this machine, which sends them: wirefs node up");
            outcomes.push(Outcome::stays(source.as_ref(), dir, &why));
        }
    }
    Ok(outcomes)
}

fn ask(places: &[String]) -> Result<Vec<Outcome>, &'static str> {
    let mut line = NodeClient::find()
        .ok_or("this user runs no node on this machine, so the addresses of other nodes are unknown")?;
    let sent = line.send(NodeRequest::Recover { places: places.to_vec() });
    // No timeout: a journal may be long, and a disk slow.
    sent.and_then(|()| line.answer(None)).map_err(|_| "this user's node does not answer")
}
