//! NFS in user space on both sides: a server in the server's namespace, and a client program that fetches one file.
//!
//! The client mounts nothing: the program starts, speaks NFS itself, and ends. The reported time is that of a file
//! minus that of an empty file: the reads. The start of the program, `open` and `close` cancel out.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::timing::{BLOCK_BYTES, FetchTimes};
use wirefs_lab::Host;
use wirefs_lab::LabError;
use wirefs_lab::{port, program};

/// The programs of NFS in user space, with their Debian packages.
pub(super) const PROGRAMS: [(&str, &str); 2] =
    [("ganesha.nfsd", "nfs-ganesha nfs-ganesha-vfs"), ("nfs-cat", "libnfs-utils")];
/// The usual port; every port is free in a new namespace.
const PORT: u16 = 2_049;
/// The number of fetches of the empty file per measured file. Their median counts, because program starts vary.
const EMPTY_FETCHES: usize = 3;
/// The name of the empty file.
pub(super) const EMPTY_FILE: &str = "empty";

/// A running NFS server, killed on drop.
pub(super) struct Nfs {
    server: Child,
    address: Ipv4Addr,
}

impl Nfs {
    /// Serves a directory on a host, at one of its addresses; the server's own files go to `state`.
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

    /// Fetches a file and compares its contents with `expected`.
    pub(super) fn fetch(&self, client: &Host, name: &str, expected: &[u8]) -> Result<FetchTimes, LabError> {
        let mut empty = [Duration::ZERO; EMPTY_FETCHES];
        for elapsed in &mut empty {
            *elapsed = self.elapsed(client, EMPTY_FILE, &[])?;
        }
        empty.sort();
        let empty = empty.get(EMPTY_FETCHES / 2).copied().unwrap_or_default();
        let total = self.elapsed(client, name, expected)?;
        let reads = u32::try_from(expected.len().div_ceil(BLOCK_BYTES)).unwrap_or(u32::MAX);
        Ok(FetchTimes { read: total.saturating_sub(empty), reads, ..FetchTimes::default() })
    }

    fn elapsed(&self, client: &Host, name: &str, expected: &[u8]) -> Result<Duration, LabError> {
        let [_, (cat, package)] = PROGRAMS;
        // Without percent-encoding, which some versions do not decode.
        let url = format!("nfs://{}/export/{name}?version=4&nfsport={PORT}", self.address);
        let mut command = client.command(cat);
        command.arg(url);
        let begun = Instant::now();
        let output = program::run(&mut command, package, "")?;
        let elapsed = begun.elapsed();
        if output.stdout != expected {
            let problem = format!(
                "{} bytes came that are not the {} of {name}: {}",
                output.stdout.len(),
                expected.len(),
                String::from_utf8_lossy(&output.stderr).trim()
            );
            return Err(LabError::Probe { measurement: "a fetch over NFS", problem });
        }
        Ok(elapsed)
    }
}

impl Drop for Nfs {
    fn drop(&mut self) {
        // The server has no unsaved data, and may have exited already.
        self.server.kill().ok();
        self.server.wait().ok();
    }
}

/// Returns the configuration: only NFSv4 (no port mapper), without a grace period.
fn configuration(export: &Path, state: &Path) -> String {
    let (export, state) = (export.display(), state.display());
    format!(
        "NFS_CORE_PARAM {{ Protocols = 4; NFS_Port = {PORT}; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; }}\n\
         NFSv4 {{ Graceless = true; RecoveryRoot = \"{state}/recovery\"; Delegations = false; Only_Numeric_Owners = true; }}\n\
         EXPORT {{ Export_Id = 1; Path = \"{export}\"; Pseudo = \"/export\"; Access_Type = RO; Squash = No_Root_Squash;\n  \
         SecType = sys, none; Protocols = 4; Transports = TCP; FSAL {{ Name = VFS; }} }}\n"
    )
}
