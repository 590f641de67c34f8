//! Kinds of runs.

/// The kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// Several clients, with a check of what each of them sees.
    Beside,
    /// One exclusive mount, with a check of its changes after kills and power losses.
    Ahead,
    /// Programs on mounts that may be exclusive, and one at the server, which create the same names exclusively.
    Rivals,
}

impl Scene {
    /// Returns the options of `make sim`.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Scene::Beside => "",
            Scene::Ahead => " AHEAD=1",
            Scene::Rivals => " RIVALS=1",
        }
    }
}
