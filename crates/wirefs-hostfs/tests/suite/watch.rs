//! The watcher, asked what it hears of changes by other programs.
//!
//! The other programs are real ones: what this process does itself counts as the server's own doing.

mod changes;
mod limits;
mod own;
mod scene;
mod systems;
