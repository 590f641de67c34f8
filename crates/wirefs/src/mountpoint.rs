//! Paths of mountpoints, resolved without access to the mount itself: its server may be dead.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use wirefs_op::fnv1a;

/// The maximum number of symbolic links.
const LINKS_MAX: usize = 16;

/// The maximum length of a name made from a mountpoint's path, in bytes; a longer one keeps its end and gets a hash.
const NAME_BYTES_MAX: usize = 60;

/// Resolves symbolic links of the mountpoint's path. Accesses only its parent directories.
///
/// # Errors
/// Fails if a parent directory does not exist or is not accessible.
pub(crate) fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..LINKS_MAX {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return std::fs::canonicalize(&path);
        };
        if name == ".." {
            return std::fs::canonicalize(&path);
        }
        let parent = std::fs::canonicalize(parent)?;
        let full = parent.join(name);
        match std::fs::read_link(&full) {
            Ok(target) => path = parent.join(target),
            Err(_) => return Ok(full),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// Returns a file name for a mountpoint: `/` becomes `-`; special characters become `\xNN`.
pub(crate) fn file_name(mountpoint: &Path) -> String {
    let bytes = mountpoint.as_os_str().as_bytes();
    let mut name = String::new();
    for &byte in bytes.iter().skip(1) {
        match byte {
            b'/' => name.push('-'),
            b'.' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => name.push(char::from(byte)),
            _ => name.push_str(&format!("\\x{byte:02x}")),
        }
    }
    if name.len() <= NAME_BYTES_MAX {
        return if name.is_empty() { "-".to_owned() } else { name };
    }
    // All plain characters are one byte, so the cut is at a character.
    let end = name.get(name.len() - NAME_BYTES_MAX..).unwrap_or_default();
    format!("{:016x}-{end}", fnv1a(&[bytes]))
}

/// A mount in the kernel's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableMount {
    pub(crate) mountpoint: PathBuf,
    pub(crate) source: String,
    /// The user whose process serves it.
    pub(crate) user: u32,
}

impl TableMount {
    /// Returns whether it is a mount of another user, given that this user's processes do not serve it.
    pub(crate) fn is_foreign(&self) -> bool {
        self.user != rustix::process::geteuid().as_raw()
    }
}

/// Returns the wirefs mounts of this machine from the kernel's table.
pub(crate) fn mounted() -> Vec<TableMount> {
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    table.split(|&byte| byte == b'\n').filter_map(parse).collect()
}

/// Returns the device number and the mountpoint of each mount in a table of the kernel.
pub(crate) fn devices(table: &[u8]) -> impl Iterator<Item = (&[u8], Vec<u8>)> {
    table.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|&byte| byte == b' ');
        let device = fields.nth(2)?;
        Some((device, unescape(fields.nth(1)?)))
    })
}

/// Returns the device number of the file system that is mounted here, as `major:minor`.
pub(crate) fn device(mountpoint: &Path) -> Option<String> {
    let table = std::fs::read("/proc/self/mountinfo").ok()?;
    let found = devices(&table).filter(|(_, path)| path == mountpoint.as_os_str().as_bytes()).last()?;
    Some(String::from_utf8_lossy(found.0).into_owned())
}

/// `id parent major:minor root mountpoint options tag… - type source options`.
fn parse(line: &[u8]) -> Option<TableMount> {
    let mut fields = line.split(|&byte| byte == b' ');
    let mountpoint = unescape(fields.nth(4)?);
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    if fields.next()? != b"fuse.wirefs" {
        return None;
    }
    let source = String::from_utf8_lossy(&unescape(fields.next()?)).into_owned();
    let options = String::from_utf8_lossy(fields.next().unwrap_or_default()).into_owned();
    let user = options.split(',').find_map(|option| option.strip_prefix("user_id=")?.parse().ok())?;
    Some(TableMount { mountpoint: PathBuf::from(OsStr::from_bytes(&mountpoint)), source, user })
}

/// Decodes `\` and three octal digits: space, tab, newline, backslash and `#`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(code) if byte == b'\\' => {
                out.push(code);
                rest = tail.get(3..).unwrap_or_default();
            }
            Some(_) | None => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_different_mountpoints_differ() {
        assert_eq!(file_name(Path::new("/mnt/a b")), "mnt-a\\x20b");
        assert_eq!(file_name(Path::new("/mnt/a-b")), "mnt-a\\x2db");
        assert_eq!(file_name(Path::new("/")), "-");
        let long = format!("/{}", "x".repeat(300));
        let longer = format!("/{}", "x".repeat(301));
        assert_ne!(file_name(Path::new(&long)), file_name(Path::new(&longer)));
        assert!(file_name(Path::new(&long)).len() <= NAME_BYTES_MAX + 17);
    }

    #[test]
    fn mount_table_is_filtered_for_wirefs() {
        let ours = b"70 26 0:45 / /mnt/a\\040b rw,nosuid - fuse.wirefs host:dir rw,user_id=7,group_id=0";
        let mountpoint = PathBuf::from("/mnt/a b");
        assert_eq!(parse(ours), Some(TableMount { mountpoint, source: "host:dir".to_owned(), user: 7 }));
        assert_eq!(parse(b"70 26 0:45 / /mnt rw shared:1 - fuse.sshfs host:dir rw"), None);
        assert_eq!(parse(b"70 26"), None);
    }

    #[test]
    fn mountpoint_is_resolved_through_links_without_access_to_it() {
        let dir = std::env::temp_dir().join(format!("wirefs-mountpoint-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("real")).unwrap();
        std::os::unix::fs::symlink("real", dir.join("link")).unwrap();
        let real = std::fs::canonicalize(&dir).unwrap().join("real");
        assert_eq!(resolve(&dir.join("link")).unwrap(), real);
        assert_eq!(resolve(&dir.join("real/")).unwrap(), real);
        assert_eq!(resolve(&dir.join("real/..")).unwrap(), std::fs::canonicalize(&dir).unwrap());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
