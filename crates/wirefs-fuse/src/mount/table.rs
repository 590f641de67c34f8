//! The kernel's table of mounts. Reading it does not access a file system whose server may be gone.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A FUSE mount in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// The minor device number, which identifies the FUSE connection.
    pub minor: u32,
    /// The source of the mount.
    pub source: String,
}

impl TableEntry {
    /// The topmost FUSE mount at `mountpoint`; `None`: there is none. Does not access the mount.
    pub fn at(mountpoint: &Path) -> Option<TableEntry> {
        find(mountpoint).ok().flatten()
    }

    /// Whether it is mounted anywhere in this mount namespace. The kernel reuses device numbers.
    pub fn is_mounted(&self) -> bool {
        std::fs::read("/proc/self/mountinfo").is_ok_and(|table| self.is_in(&table))
    }

    pub(super) fn is_in(&self, table: &[u8]) -> bool {
        table.split(|&byte| byte == b'\n').filter_map(parse).any(|(_, entry)| entry.as_ref() == Some(self))
    }
}

/// The topmost FUSE mount at `mountpoint`.
pub(crate) fn find(mountpoint: &Path) -> io::Result<Option<TableEntry>> {
    let mountpoint = resolve_mountpoint(mountpoint)?;
    Ok(find_in(&std::fs::read("/proc/self/mountinfo")?, &mountpoint))
}

/// The last line with a mountpoint is the topmost mount.
pub(super) fn find_in(table: &[u8], mountpoint: &Path) -> Option<TableEntry> {
    let lines = table.split(|&byte| byte == b'\n');
    let (_, uppermost) = lines.rev().filter_map(parse).find(|(path, _)| path == mountpoint)?;
    uppermost
}

/// `id parent major:minor root mountpoint options tag… - type source options`; an entry only if it is FUSE.
fn parse(line: &[u8]) -> Option<(PathBuf, Option<TableEntry>)> {
    let mut fields = line.split(|&byte| byte == b' ');
    let device = fields.nth(2)?;
    let mountpoint = PathBuf::from(OsString::from_vec(unescape(fields.nth(1)?)));
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = fields.next()?;
    let source = String::from_utf8_lossy(&unescape(fields.next()?)).into_owned();
    let minor = std::str::from_utf8(device).ok()?.split_once(':')?.1.parse().ok()?;
    let fuse = kind == b"fuse" || kind.starts_with(b"fuse.");
    Some((mountpoint, fuse.then_some(TableEntry { minor, source })))
}

/// The flags of the topmost FUSE mount at a mountpoint and of its file system, by name. Read-only is a flag of the
/// mount, since its file system may be mounted elsewhere too.
pub(super) fn flags_at(table: &[u8], mountpoint: &Path) -> Option<Vec<String>> {
    let lines = table.split(|&byte| byte == b'\n');
    let (line, (_, entry)) = lines
        .rev()
        .filter_map(|line| Some((line, parse(line)?)))
        .find(|(_, (path, _))| path == mountpoint)?;
    entry?;
    let words = |field: Option<&[u8]>| {
        let text = String::from_utf8_lossy(field.unwrap_or_default()).into_owned();
        text.split(',').map(str::to_owned).collect::<Vec<_>>()
    };
    let mut fields = line.split(|&byte| byte == b' ');
    let of_mount = words(fields.nth(5));
    let of_system = words(fields.skip_while(|field| *field != b"-").nth(3));
    Some(of_system.into_iter().chain(of_mount).collect())
}

/// Whether the topmost FUSE mount at `mountpoint` is read-only; `None`: there is none. Does not access the mount.
pub fn is_read_only(mountpoint: &Path) -> Option<bool> {
    let mountpoint = resolve_mountpoint(mountpoint).ok()?;
    let flags = flags_at(&std::fs::read("/proc/self/mountinfo").ok()?, &mountpoint)?;
    Some(flags.iter().any(|flag| flag == "ro"))
}

/// Space, tab, newline, backslash and `#` are encoded as `\` and three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        let code = (byte == b'\\').then(|| tail.split_first_chunk::<3>().and_then(octal)).flatten();
        match code {
            Some((code, tail)) => {
                out.push(code);
                rest = tail;
            }
            None => out.push(byte),
        }
    }
    out
}

fn octal<'a>((digits, tail): (&[u8; 3], &'a [u8])) -> Option<(u8, &'a [u8])> {
    let digits = std::str::from_utf8(digits).ok()?;
    u8::from_str_radix(digits, 8).ok().map(|code| (code, tail))
}

/// Symlinks that lead to a mountpoint at most.
const LINKS_MAX: usize = 16;

/// The path of a mountpoint in the table: absolute, without links. Only its parents are accessed: the mountpoint itself
/// would need the server, which may not answer.
///
/// # Errors
/// Its parents cannot be accessed.
pub fn resolve_mountpoint(path: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..LINKS_MAX {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return std::fs::canonicalize(&path);
        };
        let parent = std::fs::canonicalize(parent)?;
        let full = parent.join(name);
        match std::fs::read_link(&full) {
            Ok(target) => path = parent.join(target),
            Err(_) => return Ok(full),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}
