//! What a signal does, by how far the mount is.
//!
//! | stage | Ctrl-C, SIGTERM, SIGHUP |
//! |---|---|
//! | connecting | ends the process |
//! | mounting | waits for the outcome |
//! | mounted | unmounts; the next one ends the process |

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use wirefs_driver::mount::{MountControl, MountError, Mounted};

use crate::sys::{self, Signals};
use crate::terminal::note;

/// How far the mount is, shared with the thread that waits for signals.
#[derive(Clone)]
pub(super) struct Stage {
    control: Arc<Mutex<Option<MountControl>>>,
}

impl Stage {
    /// Takes over the signals of this process. Call it before any thread is started.
    ///
    /// # Errors
    /// The system gives no descriptor or thread.
    pub(super) fn begin(foreground: bool) -> Result<Stage> {
        let signals = Signals::take(&[sys::INTERRUPT, sys::TERMINATE, sys::HANG_UP])
            .context("cannot take over the signals")?;
        let stage = Stage { control: Arc::default() };
        let shared = stage.clone();
        thread::Builder::new()
            .name("wirefs-signals".into())
            .spawn(move || shared.obey(&signals, foreground))
            .context("cannot start a thread")?;
        Ok(stage)
    }

    /// Mounts, while signals wait for the outcome: ended in the middle, the process would leave a dead mount behind.
    ///
    /// # Errors
    /// As `mount`.
    pub(super) fn mount(
        &self,
        mount: impl FnOnce() -> Result<Mounted, MountError>,
    ) -> Result<Mounted, MountError> {
        let mut control = self.lock();
        let mounted = mount()?;
        *control = Some(mounted.control());
        Ok(mounted)
    }

    /// It is unmounted: signals end the process again.
    pub(super) fn end(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<MountControl>> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn obey(&self, signals: &Signals, foreground: bool) {
        let mut is_ending = false;
        while let Ok(signal) = signals.wait() {
            let control = self.lock().clone();
            match control {
                Some(control) if !is_ending => {
                    is_ending = true;
                    let end = move || super::end(&control);
                    // On a thread of its own: a second signal must be heard meanwhile.
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
