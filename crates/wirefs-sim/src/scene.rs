//! Kinds of runs.

/// What kind of run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// Clients beside each other, and what each of them sees.
    Beside,
    /// One client that is ahead of its server, and what becomes of its changes when processes are killed and machines lose power.
    Ahead,
    /// Programs on mounts that may be ahead of the server, and one at the server, which create the same names exclusively.
    Rivals,
}

impl Scene {
    /// What `make sim` is told to run it.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Scene::Beside => "",
            Scene::Ahead => " AHEAD=1",
            Scene::Rivals => " RIVALS=1",
        }
    }
}
