//! The clients of the sessions, and their shares of the descriptors that are kept.

use crate::open_files::{Budget, ClientBudget};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use wirefs_server::{PartyKey, SessionKey};

/// The budgets by client.
#[derive(Debug)]
pub(crate) struct Clients {
    all: Arc<Budget>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    by_party: HashMap<PartyKey, Weak<ClientBudget>>,
    by_session: HashMap<SessionKey, Arc<ClientBudget>>,
}

impl Clients {
    pub(crate) fn new(all: Arc<Budget>) -> Clients {
        Clients { all, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the client of a session.
    pub(crate) fn introduce(&self, session: SessionKey, party: &PartyKey) {
        let mut state = self.state();
        let known = state.by_party.get(party).and_then(Weak::upgrade);
        let budget = known.unwrap_or_else(|| ClientBudget::new(Arc::clone(&self.all)));
        state.by_session.insert(session, Arc::clone(&budget));
        state.by_party.retain(|_, budget| budget.strong_count() > 0);
        state.by_party.insert(party.clone(), Arc::downgrade(&budget));
    }

    /// Returns the budget of a session. One without a known client is a client of its own.
    pub(crate) fn budget(&self, session: SessionKey) -> Arc<ClientBudget> {
        let own = || ClientBudget::new(Arc::clone(&self.all));
        Arc::clone(self.state().by_session.entry(session).or_insert_with(own))
    }

    /// Forgets an ended session.
    pub(crate) fn end(&self, session: SessionKey) {
        self.state().by_session.remove(&session);
    }
}
