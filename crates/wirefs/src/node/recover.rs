//! What mounts of nodes left in their journals: who has the table brings it there.

use wirefs_driver::mount::{LeftState, left_journals};

use super::control::{Asked, NodeLine};
use crate::failure::failure;
use crate::mount::JOURNALS;
use crate::places;
use crate::recover::Outcome;

/// Whether a source is a node's place, as in `/net/linus2`: no other source begins so.
pub(crate) fn is_place(source: &[u8]) -> bool {
    source.first() == Some(&b'/')
}

/// Has this user's node bring to others what was left of mounts at these places.
///
/// # Errors
/// The directory of journals cannot be known.
pub(crate) fn recover(places: &[String]) -> anyhow::Result<Vec<Outcome>> {
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let (mut outcomes, why) = match ask(places) {
        Ok(outcomes) => (outcomes, "the node is not there; what was left comes to it once it is"),
        Err(why) => (Vec::new(), why),
    };
    let left = left_journals(&places::state_dir()?.join(JOURNALS));
    for journal in left {
        let LeftState::Left { source, .. } = journal.state else { continue };
        let dir = journal.dir.display().to_string();
        if places.contains(&source) && !outcomes.iter().any(|told| told.is_about(&source, &dir)) {
            let why = failure(why, "start this machine's node, which brings it there: wirefs node up");
            outcomes.push(Outcome::stays(source.as_ref(), dir, &why));
        }
    }
    Ok(outcomes)
}

fn ask(places: &[String]) -> Result<Vec<Outcome>, &'static str> {
    let mut line = NodeLine::find().ok_or("no node of this user is here, which knows where others are")?;
    let asked = line.ask(Asked::Recover { places: places.to_vec() });
    // A journal may be long, and a disk slow.
    asked.and_then(|()| line.answer(None)).map_err(|_| "this user's node does not answer")
}
