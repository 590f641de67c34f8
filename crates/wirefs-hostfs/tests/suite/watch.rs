//! The watcher and its reports of changes by other programs.

mod changes;
mod limits;
mod own;
mod scene;
mod systems;
