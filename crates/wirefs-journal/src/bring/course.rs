//! What may be done with a journal that was left, by what the server says of its session.

use crate::header::Header;
use crate::replay::{Replay, Terms, Unfit};
use crate::survey::Survey;
use wirefs_op::message::version::BootId;

/// The number of a session's first change: a ledger that says this, or less, knows none.
const FIRST: u64 = 1;

impl Terms {
    /// Whether the server counts changes, and knows of none of this session.
    pub fn is_void(&self) -> bool {
        self.ledger.is_some_and(|ledger| ledger <= FIRST)
    }
}

/// That.
#[derive(Debug)]
pub enum Course {
    /// The server's ledger knows what of it is done; the rest is sent as it is.
    AsTheyAre(Replay),
    /// The server's machine was started again since, and may have lost what its disk did not have.
    Again,
    /// Nothing is sent.
    Nothing(Unfit),
}

impl Course {
    /// `is_certain`: nothing of the journal can be lost, and nobody else has sent any of it. `decided`: to the server with this boot id
    /// what it has lost is being sent again.
    pub fn of(
        survey: &Survey,
        header: &Header,
        terms: Terms,
        is_certain: bool,
        decided: Option<BootId>,
    ) -> Course {
        // It may have done changes of which nobody heard.
        let is_other = terms.boot != header.boot;
        if is_other && (decided == Some(terms.boot) || terms.is_void()) {
            return Course::Again;
        }
        // Above all numbers of the journal are only those of another process that did it again, and did not come to its end; and what it had
        // found is not noted, or was by another run of the kernel.
        if is_other && terms.ledger.is_some_and(|ledger| ledger > survey.end()) {
            return Course::Nothing(Unfit::Unknown);
        }
        // What the journal notes is all that the server was told, as long as no power cut took a note away.
        let certain = is_certain.then_some(survey.answered);
        match Replay::new(terms, survey.has_answers(), certain) {
            Ok(replay) => Course::AsTheyAre(replay),
            Err(unfit) => Course::Nothing(unfit),
        }
    }
}
