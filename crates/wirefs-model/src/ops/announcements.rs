//! Whether a tree says what it is about to change: no less than it does change, or others go on believing what is not so,
//! and no more, or they forget what they could have kept.

use super::{Ask, Run, unusable};
use crate::dice::Dice;
use crate::mismatch::{History, Mismatch};
use crate::ops::client::Client;
use crate::ops::objects::{Change, Objects};
use crate::tree::ModelTree;
use std::collections::BTreeSet;
use wirefs_op::message::put::PutMode;
use wirefs_op::message::version::BootId;
use wirefs_server::Tree;

/// Asks an empty `tree` the `requests` random requests that `seed` determines, each a few times over: put aside at its first
/// touch, at its second, and so on until it passes. What it then has touched is compared with what has changed in the
/// model. All attributes that it tells must be granted.
///
/// # Errors
/// The first difference.
pub fn run_touches(seed: u64, requests: usize, tree: &dyn Tree) -> Result<(), Mismatch> {
    let model = ModelTree::new(BootId(1));
    let attach = |tree| Client::attach(tree).map_err(|errno| unusable(seed, &errno.to_string()));
    let mut run = Run {
        seed,
        step: 0,
        model: attach(&model)?,
        other: attach(tree)?.parking(),
        history: History::default(),
    };
    run.adopt_root()?;
    let mut dice = Dice::new(seed);
    for _ in 0..requests {
        run.step_touching(&model, &Ask::random(&mut dice))?;
    }
    run.compare_all()?;
    run.model.leave();
    run.other.leave();
    Ok(())
}

impl Run<'_> {
    fn step_touching(&mut self, model: &ModelTree, ask: &Ask) -> Result<(), Mismatch> {
        let (before, places) = (Objects::of(&self.model), Objects::of(&self.other));
        self.other.take_touched();
        self.answer(model, ask)?;
        let succeeded = self.model.has_succeeded() && self.other.has_succeeded();
        let mut touched = self.other.take_touched();
        self.settle()?;
        touched.extend(self.other.take_touched());
        let after = Objects::of(&self.model);
        let changed = before.changed_until(&after);
        let touched = (places.touched_by(&touched), touched);
        let untold: Vec<&Change> = changed.iter().filter(|change| !covers(&touched.0, change)).collect();
        let may_be = |it: &Change| {
            is_real(it, &changed) || may_be_in_vain(ask, it, &changed) || before.is_closed_until(&after, it)
        };
        let in_vain: Vec<&Change> = touched.0.iter().filter(|it| !may_be(it)).collect();
        let is_shared = touched.1.iter().any(|touched| touched.name.is_some() && !touched.exclusive);
        if !untold.is_empty() || is_shared || (succeeded && !in_vain.is_empty()) {
            let asked = format!("what {ask:?} touches (untold {untold:?}, in vain {in_vain:?})");
            return Err(self.mismatch(asked, format!("{changed:?}"), format!("{:?}", touched.1)));
        }
        let defied = self.other.take_defied();
        // What the request itself has made it may go on with.
        if !places.touched_by(&defied).is_empty() {
            let asked = format!("whether {ask:?} is put aside");
            return Err(self.mismatch(asked, "yes".into(), format!("it goes on with {defied:?}")));
        }
        if self.other.take_ungranted() {
            let asked = format!("whether all that {ask:?} tells is granted");
            return Err(self.mismatch(asked, "all".into(), "not all".into()));
        }
        Ok(())
    }
}

fn covers(touched: &BTreeSet<Change>, change: &Change) -> bool {
    touched.contains(change)
        || match change {
            Change::Name(dir, _) => touched.contains(&Change::Object(dir.clone())),
            Change::Attributes(dir) => touched.iter().any(|touched| match touched {
                Change::Object(label) | Change::Name(label, _) | Change::Attributes(label) => label == dir,
            }),
            Change::Object(_) => false,
        }
}

/// Whether what was touched did change.
fn is_real(touched: &Change, changed: &BTreeSet<Change>) -> bool {
    changed.contains(touched)
        || match touched {
            Change::Object(label) | Change::Name(label, _) | Change::Attributes(label) => {
                changed.contains(&Change::Attributes(label.clone()))
            }
        }
}

/// What may be touched and yet stay as it is, although the request succeeds.
fn may_be_in_vain(ask: &Ask, touched: &Change, changed: &BTreeSet<Change>) -> bool {
    match (ask, touched) {
        // That the file is there already is found out by trying to make it.
        (Ask::Put { mode, .. }, Change::Name(..)) => {
            mode.has(PutMode::CREATE) && !mode.has(PutMode::EXCLUSIVE)
        }
        // A directory's attributes were set, and what was closed then had a name in it: both in one step.
        (Ask::Put { mode, .. }, Change::Object(dir)) => {
            let is_in = |change: &Change| matches!(change, Change::Name(other, _) if other == dir);
            mode.has(PutMode::STAT) && changed.iter().any(is_in)
        }
        // Two names of one object stay.
        (Ask::Rename { .. }, _) => true,
        _ => false,
    }
}
