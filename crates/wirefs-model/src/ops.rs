//! Random Op requests to a tree and to the model beside it, their replies compared.

mod client;
mod collected;
mod compare;
mod objects;
mod request;
mod told;
mod touching;

use crate::dice::Dice;
use crate::mismatch::{History, Mismatch};
use crate::ops::client::Client;
use crate::tree::ModelTree;
use request::Ask;
use told::Told;
pub use touching::run_touches;
use wirefs_op::message::version::BootId;
use wirefs_server::Tree;

/// The whole trees are compared after each so many requests, and at the end.
const SNAPSHOT_EVERY: usize = 100;

/// Asks an empty `tree` the `requests` random requests that `seed` determines, and compares each answer with the
/// model's. The tree must not check permissions, or act as a user who may do everything.
///
/// # Errors
/// The first difference.
pub fn run_op(seed: u64, requests: usize, tree: &dyn Tree) -> Result<(), Mismatch> {
    let model = ModelTree::new(BootId(1));
    let mut run = Run {
        seed,
        step: 0,
        model: Client::attach(&model).map_err(|errno| unusable(seed, &errno.to_string()))?,
        other: Client::attach(tree).map_err(|errno| unusable(seed, &errno.to_string()))?,
        history: History::default(),
    };
    run.adopt_root()?;
    let mut dice = Dice::new(seed);
    for _ in 0..requests {
        run.step(&model, &Ask::random(&mut dice))?;
    }
    run.compare_all()?;
    run.model.leave();
    run.other.leave();
    Ok(())
}

fn unusable(seed: u64, why: &str) -> Mismatch {
    Mismatch {
        seed: Some(seed),
        step: 0,
        asked: "to attach".into(),
        model: "an empty tree".into(),
        world: why.into(),
        history: vec![],
    }
}

struct Run<'a> {
    seed: u64,
    step: usize,
    model: Client<'a>,
    other: Client<'a>,
    history: History,
}

impl Run<'_> {
    /// Gives the model's root the attributes of the other's.
    fn adopt_root(&mut self) -> Result<(), Mismatch> {
        let root = self.other.root();
        let set = wirefs_op::SetStat {
            mode: Some(root.mode),
            uid: Some(root.uid),
            gid: Some(root.gid),
            ..wirefs_op::SetStat::default()
        };
        self.model.perform(&Ask::set_root(set));
        self.compare_all()
    }

    fn step(&mut self, model: &ModelTree, ask: &Ask) -> Result<(), Mismatch> {
        self.answer(model, ask)?;
        self.settle()
    }

    /// Both do it, and tell the same.
    fn answer(&mut self, model: &ModelTree, ask: &Ask) -> Result<(), Mismatch> {
        let seek = match ask {
            Ask::Seek { which, offset, hole } => {
                self.model.target(which).map(|target| (target, *offset, *hole))
            }
            _ => None,
        };
        let told = self.other.perform(ask);
        if ask.zeroes() && told.is_unsupported() {
            // Not each file system zeroes in place; nothing was changed.
            return Ok(());
        }
        let expected = self.model.perform(ask);
        if expected != Told::LeftOut {
            self.history.note(&format!("{}: {ask:?}", self.step), &told);
        }
        let agrees = match seek {
            Some((target, offset, hole)) if expected != Told::LeftOut => {
                let answer = told.place();
                // What seeking in a directory means is left to the file system.
                expected.is_wrong_kind()
                    || expected.allows(&told, true)
                    || answer.is_some_and(|answer| {
                        model.may_seek_answer(self.model.session(), &target, offset, hole, answer)
                    })
            }
            _ => expected.allows(&told, self.counts_subdirectories()),
        };
        if !agrees {
            return Err(self.mismatch(format!("{ask:?}"), format!("{expected:?}"), format!("{told:?}")));
        }
        Ok(())
    }

    /// Takes over what the last request opened and closed.
    fn settle(&mut self) -> Result<(), Mismatch> {
        self.model.settle();
        self.other.settle();
        let (expected, shared) = (self.model.sharing(), self.other.sharing());
        if expected != shared {
            let asked = "which slots share an fd".into();
            return Err(self.mismatch(asked, format!("{expected:?}"), format!("{shared:?}")));
        }
        self.step += 1;
        if self.step.is_multiple_of(SNAPSHOT_EVERY) {
            self.compare_all()?;
        }
        Ok(())
    }

    /// Whether the other tree's directories count their subdirectories among their links.
    fn counts_subdirectories(&self) -> bool {
        self.other.root().nlink == 2
    }

    fn compare_all(&mut self) -> Result<(), Mismatch> {
        let counts = self.counts_subdirectories();
        compare::everything(&mut self.model, &mut self.other, counts)
            .map_err(|(asked, model, other)| self.mismatch(asked, model, other))
    }

    fn mismatch(&self, asked: String, model: String, world: String) -> Mismatch {
        Mismatch {
            seed: Some(self.seed),
            step: self.step,
            asked,
            model,
            world,
            history: self.history.lines(),
        }
    }
}
