//! NFS in user space on both sides: a server of its own in the server's namespace, and a program that fetches one file.
//!
//! The program mounts nothing: it is started, speaks NFS itself, and ends. What counts is what a file takes beyond an empty one, which is
//! its reads: the program's start and the server's greeting are no part of it, nor are `open` and `close`, which are in both.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::timing::{BLOCK_BYTES, Fetch};
use wirefs_lab::Host;
use wirefs_lab::LabError;
use wirefs_lab::{port, program};

/// The programs of NFS in user space, and the Debian packages that they are in.
pub(super) const PROGRAMS: [(&str, &str); 2] =
    [("ganesha.nfsd", "nfs-ganesha nfs-ganesha-vfs"), ("nfs-cat", "libnfs-utils")];
/// The usual port. Every port of the server is free.
const PORT: u16 = 2_049;
/// How often that is fetched for each other file: their median counts, since the start of a program takes now this, now that.
const EMPTIES: usize = 3;
/// The file that costs nothing but `open` and `close`.
pub(super) const EMPTY: &str = "empty";

/// A running server; dropping it ends it.
pub(super) struct Nfs {
    server: Child,
    address: Ipv4Addr,
}

impl Nfs {
    /// Serves a directory on a host, at one of its addresses; what the server needs goes to `state`.
    pub(super) fn start(
        host: &Host,
        address: Ipv4Addr,
        export: &Path,
        state: &Path,
    ) -> Result<Nfs, LabError> {
        let failed = |error| LabError::io(format!("set up NFS in {}", state.display()), error);
        fs::create_dir_all(state.join("recovery")).map_err(failed)?;
        fs::write(state.join("config"), configuration(export, state)).map_err(failed)?;
        let output = fs::File::create(state.join("output")).map_err(failed)?;
        let [(server, packages), _] = PROGRAMS;
        let server = host
            .command(program::find(server, packages)?)
            .arg("-F")
            .args(["-f".as_ref(), state.join("config").as_os_str()])
            .args(["-L".as_ref(), state.join("log").as_os_str()])
            .args(["-p".as_ref(), state.join("pid").as_os_str()])
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(failed)?)
            .stderr(output)
            .spawn()
            .map_err(failed)?;
        let nfs = Nfs { server, address };
        port::wait_for(host, (address, PORT), "ganesha.nfsd")?;
        Ok(nfs)
    }

    /// Fetches a file, and holds its bytes against what they are to be.
    pub(super) fn fetch(&self, client: &Host, name: &str, expected: &[u8]) -> Result<Fetch, LabError> {
        let mut empty = [Duration::ZERO; EMPTIES];
        for took in &mut empty {
            *took = self.took(client, EMPTY, &[])?;
        }
        empty.sort();
        let empty = empty.get(EMPTIES / 2).copied().unwrap_or_default();
        let whole = self.took(client, name, expected)?;
        let reads = u32::try_from(expected.len().div_ceil(BLOCK_BYTES)).unwrap_or(u32::MAX);
        Ok(Fetch { read: whole.saturating_sub(empty), reads, ..Fetch::default() })
    }

    fn took(&self, client: &Host, name: &str, expected: &[u8]) -> Result<Duration, LabError> {
        let [_, (cat, package)] = PROGRAMS;
        // Not escaped: not all of its versions know that.
        let url = format!("nfs://{}/export/{name}?version=4&nfsport={PORT}", self.address);
        let mut command = client.command(cat);
        command.arg(url);
        let begun = Instant::now();
        let output = program::run(&mut command, package, "")?;
        let took = begun.elapsed();
        if output.stdout != expected {
            let problem = format!(
                "{} bytes came that are not the {} of {name}: {}",
                output.stdout.len(),
                expected.len(),
                String::from_utf8_lossy(&output.stderr).trim()
            );
            return Err(LabError::Probe { what: "a fetch over NFS", problem });
        }
        Ok(took)
    }
}

impl Drop for Nfs {
    fn drop(&mut self) {
        // It has nothing to bring to a disk, and may have ended.
        self.server.kill().ok();
        self.server.wait().ok();
    }
}

/// NFSv4 alone, which needs no port mapper, without the grace time after a start.
fn configuration(export: &Path, state: &Path) -> String {
    let (export, state) = (export.display(), state.display());
    format!(
        "NFS_CORE_PARAM {{ Protocols = 4; NFS_Port = {PORT}; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; }}\n\
         NFSv4 {{ Graceless = true; RecoveryRoot = \"{state}/recovery\"; Delegations = false; Only_Numeric_Owners = true; }}\n\
         EXPORT {{ Export_Id = 1; Path = \"{export}\"; Pseudo = \"/export\"; Access_Type = RO; Squash = No_Root_Squash;\n  \
         SecType = sys, none; Protocols = 4; Transports = TCP; FSAL {{ Name = VFS; }} }}\n"
    )
}
