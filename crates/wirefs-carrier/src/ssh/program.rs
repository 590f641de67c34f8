//! The programs that can be copied to a host without wirefs.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{Context, SHA256};

/// Bytes of a program that are read at once.
const CHUNK_BYTES: usize = 256 * 1024;
/// Digits of a program's hash in the name of its copy.
const ID_DIGITS: usize = 16;
/// The machines for which a static program may lie beside this one, as `wirefs-ARCH-linux-musl`.
const STATIC_MACHINES: [&str; 2] = ["x86_64", "aarch64"];

/// Programs for some kinds of machines; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    list: Arc<Vec<Program>>,
}

impl Programs {
    /// Returns this program for machines like this one, and the static programs in some directories: those run with any
    /// C library, and come first.
    pub fn with_static(directories: &[PathBuf]) -> Programs {
        let mut list = Vec::new();
        for machine in STATIC_MACHINES {
            let name = format!("wirefs-{machine}-linux-musl");
            let path = directories.iter().map(|directory| directory.join(&name)).find(|path| path.is_file());
            list.extend(path.map(|path| Program::new(path, format!("Linux {machine}"))));
        }
        // The running program, even if its file was replaced meanwhile.
        list.push(Program::new("/proc/self/exe".into(), this_machine()));
        Programs { list: Arc::new(list) }
    }

    /// Returns the program in a file, for machines like this one.
    pub fn of(path: &Path) -> Programs {
        Programs { list: Arc::new(vec![Program::new(path.to_owned(), this_machine())]) }
    }

    /// Returns the ids of all programs that can be read, separated by blanks.
    pub(super) fn ids(&self) -> String {
        let hashes = self.list.iter().filter_map(|program| program.hash());
        hashes.filter_map(|hash| hash.get(..ID_DIGITS)).collect::<Vec<_>>().join(" ")
    }

    /// Returns whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the program for a machine, named as `uname -sm` prints it.
    pub(super) fn of_machine(&self, machine: &str) -> Option<&Program> {
        self.list.iter().find(|program| program.machine == machine)
    }
}

/// Returns `uname -sm` of this machine.
pub(super) fn this_machine() -> String {
    let uname = rustix::system::uname();
    format!("{} {}", uname.sysname().to_string_lossy(), uname.machine().to_string_lossy())
}

/// A program for one kind of machine.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    machine: String,
    /// In hexadecimal digits; `None` if the file cannot be read.
    hash: OnceLock<Option<String>>,
}

/// A program as it is sent.
pub(super) struct Packed {
    pub(super) hash: String,
    pub(super) id: String,
    pub(super) bytes: Vec<u8>,
}

impl Program {
    fn new(path: PathBuf, machine: String) -> Program {
        Program { path, machine, hash: OnceLock::new() }
    }

    fn hash(&self) -> Option<&str> {
        self.hash.get_or_init(|| hash_of(&self.path).ok()).as_deref()
    }

    /// Returns the program compressed.
    ///
    /// # Errors
    /// It cannot be read.
    ///
    /// # Cost
    /// Half a second for 10 MB.
    pub(super) fn pack(&self) -> io::Result<Packed> {
        let hash = hash_of(&self.path)?;
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        io::copy(&mut File::open(&self.path)?, &mut packer)?;
        packer.flush()?;
        let id = hash.get(..ID_DIGITS).unwrap_or_default().to_owned();
        Ok(Packed { hash, id, bytes: packer.finish()? })
    }
}

fn hash_of(path: &Path) -> io::Result<String> {
    let (mut file, mut context) = (File::open(path)?, Context::new(&SHA256));
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = file.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        context.update(chunk.get(..count).unwrap_or_default());
    }
    let mut digits = String::new();
    for byte in context.finish().as_ref() {
        let _infallible = write!(digits, "{byte:02x}");
    }
    Ok(digits)
}
