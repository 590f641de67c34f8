//! Lock files: names that programs create exclusively. The program that created the name holds the lock until
//! it removes or renames it.
//!
//! Both sides use this list. A client always validates these names at the server
//! (`docs/design/0030-exclusive-creation.md`); a server reports external changes of them before it replies.

/// The prefixes of lock files: `lockfile`, `.lock-wscript`, Emacs's `.#notes`, LibreOffice's
/// `.~lock.table.ods#`, `LCK..ttyS0`.
const BEGINNINGS: [&[u8]; 5] = [b"lock", b".lock", b".#", b".~lock.", b"lck.."];
/// The suffixes of lock files: `index.lock`, `mbox.lck`, `frontend-lock`, `SingletonLock`, `sshd.pid`, vim's
/// `.notes.swp`, `notes~`.
const ENDINGS: [&[u8]; 8] = [b".lock", b".lck", b"-lock", b"_lock", b"singletonlock", b".pid", b".swp", b"~"];

/// Returns true if programs use such a name as a lock file. The comparison ignores case.
pub fn is_lock_name(name: &[u8]) -> bool {
    let begins = |with: &&[u8]| name.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
    let ends = |with: &&[u8]| {
        let from = name.len().checked_sub(with.len());
        from.and_then(|from| name.get(from..)).is_some_and(|end| end.eq_ignore_ascii_case(with))
    };
    BEGINNINGS.iter().any(begins) || ENDINGS.iter().any(ends)
}

#[cfg(test)]
mod tests;
