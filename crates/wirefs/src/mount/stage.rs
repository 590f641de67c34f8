//! The effect of signals at each stage of a mount.
//!
//! | stage | Ctrl-C, SIGTERM, SIGHUP |
//! |---|---|
//! | connecting | ends the process |
//! | mounting | waits for the outcome |
//! | mounted | unmounts; the next one ends the process |

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use wirefs_mount::{MountControl, MountStartError, Mounted};

use crate::sys::{self, Signals};
use crate::terminal::note;

/// The stage of the mount, shared with the thread that waits for signals.
#[derive(Clone)]
pub(super) struct Stage {
    control: Arc<Mutex<Option<MountControl>>>,
}

impl Stage {
    /// Takes over the signals of this process. Must be called before any thread is started.
    ///
    /// # Errors
    /// The system has no file descriptor or thread left.
    pub(super) fn begin(foreground: bool) -> Result<Stage> {
        let signals =
            Signals::take(&[sys::INTERRUPT, sys::TERMINATE, sys::HANG_UP]).context("cannot block signals")?;
        let stage = Stage { control: Arc::default() };
        let shared = stage.clone();
        thread::Builder::new()
            .name("wirefs-signals".into())
            .spawn(move || shared.handle_signals(&signals, foreground))
            .context("cannot start a thread")?;
        Ok(stage)
    }

    /// Mounts, while signals wait for the result: a process ended meanwhile would leave a dead mount.
    ///
    /// # Errors
    /// As `mount`.
    pub(super) fn mount(
        &self,
        mount: impl FnOnce() -> Result<Mounted, MountStartError>,
    ) -> Result<Mounted, MountStartError> {
        let mut control = self.lock();
        let mounted = mount()?;
        *control = Some(mounted.control());
        Ok(mounted)
    }

    /// Marks the mount as unmounted: signals end the process again.
    pub(super) fn end(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<MountControl>> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle_signals(&self, signals: &Signals, foreground: bool) {
        let mut is_ending = false;
        while let Ok(signal) = signals.wait() {
            let control = self.lock().clone();
            match control {
                Some(control) if !is_ending => {
                    is_ending = true;
                    let end = move || super::end(&control);
                    // In a thread of its own: a second signal must be received meanwhile.
                    if thread::Builder::new().name("wirefs-end".into()).spawn(end).is_err() {
                        std::process::exit(128 + signal);
                    }
                }
                Some(_) | None => {
                    if foreground {
                        note!("");
                    }
                    std::process::exit(128 + signal);
                }
            }
        }
    }
}
