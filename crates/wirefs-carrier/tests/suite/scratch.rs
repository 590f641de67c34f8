//! A temporary directory for a test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("wirefs-carrier-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes a program, in another process: a descriptor of ours, inherited by a child that another test starts just now,
/// would make the program busy.
pub fn script(path: &Path, text: &str) {
    let written = Command::new("sh")
        .args(["-c", "printf %s \"$2\" >\"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(path)
        .arg(text)
        .status()
        .unwrap();
    assert!(written.success());
}
