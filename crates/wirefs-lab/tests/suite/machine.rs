//! A server that is restarted whenever it ends, on a machine whose power can be cut.

mod disk;

pub(crate) use disk::FileSystem;

use std::cell::{Cell, RefCell};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::site::{Site, wait_for};
use disk::LoopDisk;

/// The restart loop of the server. It removes the state of the previous run: the mount is the sole client, so that the
/// server needs no grace period.
const RESTART_LOOP: &str = "while :; do rm -rf \"$XDG_STATE_HOME\"/wirefs/exports; : >serving; \
     ./wirefs serve \"$EXPORT\" --listen \"$LISTEN\" >serving 2>>errors & echo $! >next; mv next pid; wait $!; done";
/// The machine. It unmounts the inherited wirefs mounts before it serves one, which its namespace would otherwise keep.
/// The machine ends with its controller.
///
/// Between the cut and the end of the machine, the test process opens nothing on the disk: a child of another test
/// would inherit the descriptor and could block on a mount of this server before it closes it.
///
/// `shutdown` without `-f` is FS_IOC_SHUTDOWN without a flush of the log; ext4 supports it too.
const MACHINE: &str = r#"
if [ -n "$DEVICE" ]; then
    umount -a -l -t fuse.wirefs 2>none
    mount --bind boot_id /proc/sys/kernel/random/boot_id || exit
fi
while read -r command; do
    case $command in
        disk)
            # The device may still be held for a moment by the mount before.
            for try in $(seq 300); do mount -o "$OPTIONS" "$DEVICE" disk && break; sleep 0.1; done
            mountpoint -q disk || exit
            mkdir -p disk/export disk/state
            ;;
        on)
            setsid sh -c "$RESTART_LOOP" </dev/null >none 2>&1 &
            echo $! >restart_loop
            ;;
        cut) xfs_io -x -c shutdown disk || exit ;;
        write_log) : >disk/synced && sync disk/synced || exit ;;
        write_all) sync -f disk || exit ;;
        off)
            # A process that keeps a file open there forever must not make the test wait as long.
            for try in $(seq 6000); do umount --no-canonicalize disk 2>none && break; sleep 0.02; done
            ! mountpoint -q disk || exit
            ;;
        reset) ss --kill --tcp state established >none || exit ;;
    esac
    echo "$command"
done
kill -9 -- "-$(cat restart_loop)"
"#;

/// A server under the control of a shell. A child of this process would have our descriptors in the mount until its
/// exec, and closing them would wait for the server.
pub(crate) struct Kept<'a> {
    site: &'a Site,
    disk: Option<LoopDisk>,
    machine: Child,
    control: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
    boot_count: Cell<u64>,
}

impl Kept<'_> {
    /// Replaces the site's server. With `file_system`, the exported directory and the server's state are on a disk of
    /// their own.
    pub(crate) fn of(site: &Site, file_system: Option<FileSystem>) -> Kept<'_> {
        site.kill_server();
        fs::create_dir(site.path("disk")).unwrap();
        set_boot_id(&site.path("boot_id"), 1);
        let disk = file_system.map(|kind| LoopDisk::new(&site.path("disk.img"), kind));
        let mut machine = machine(site, disk.as_ref());
        let control = (machine.stdin.take().unwrap(), BufReader::new(machine.stdout.take().unwrap()));
        let kept = Kept { site, disk, machine, control: RefCell::new(control), boot_count: Cell::new(1) };
        if kept.disk.is_some() {
            kept.request("disk");
        }
        kept.serve();
        kept
    }

    /// Sends a command to the machine and waits until it is done.
    fn request(&self, command: &str) {
        let (stdin, stdout) = &mut *self.control.borrow_mut();
        writeln!(stdin, "{command}").unwrap();
        let mut done = String::new();
        stdout.read_line(&mut done).unwrap();
        assert_eq!(done.trim_end(), command);
    }

    /// Returns the process of the server once it listens.
    fn listening_process(&self) -> Option<Pid> {
        let pid = fs::read_to_string(self.site.path("pid")).ok()?;
        let is_ready = fs::read(self.site.path("serving")).is_ok_and(|line| !line.is_empty());
        Pid::from_raw(pid.trim().parse().ok().filter(|_| is_ready)?)
    }

    pub(crate) fn kill(&self) {
        let killed = self.listening_process().unwrap();
        kill_process(killed, Signal::KILL).unwrap();
        wait_for("another server", || self.listening_process().is_some_and(|pid| pid != killed));
    }

    /// Resets all connections of the server.
    pub(crate) fn reset(&self) {
        self.request("reset");
    }

    /// Cuts the power of the machine; loses all data that its disk does not have.
    pub(crate) fn lose_power(&self) {
        let (disk, process) = (self.disk.as_ref().unwrap(), self.listening_process().unwrap());
        // The server must send nothing after the cut.
        kill_process(process, Signal::STOP).unwrap();
        wait_for("the server to stop", || is_stopped(process));
        self.request("cut");
        self.kill_all();
        fs::remove_file(self.site.path("pid")).unwrap();
        self.request("off");
        wait_for("the end of the machine", || disk.is_free());
    }

    /// Starts the machine again: mounts the disk, without the server.
    pub(crate) fn boot(&self) {
        self.boot_count.set(self.boot_count.get() + 1);
        set_boot_id(&self.site.path("boot_id"), self.boot_count.get());
        self.request("disk");
    }

    /// Starts the server and waits until it listens.
    pub(crate) fn serve(&self) {
        self.request("on");
        wait_for("the server", || self.listening_process().is_some());
    }

    /// Returns the exported directory as seen by the machine; valid without a server too.
    pub(crate) fn on_disk(&self) -> PathBuf {
        self.in_machine("disk/export")
    }

    /// Writes the server's file system to its disk.
    pub(crate) fn sync_disk(&self) {
        self.request("write_all");
    }

    /// Writes the log of the server's file system to its disk: names and attributes, but not the contents of other
    /// files.
    pub(crate) fn sync_log(&self) {
        self.request("write_log");
    }

    /// Returns the exported directory, or a copy of it.
    pub(crate) fn export(&self) -> PathBuf {
        if self.disk.is_none() {
            return self.site.export().to_owned();
        }
        let copy = self.site.path("copy");
        let copied =
            Command::new("cp").arg("-a").arg(self.in_machine("disk/export")).arg(&copy).status().unwrap();
        assert!(copied.success());
        copy
    }

    /// Returns a path of the site as seen by the machine.
    fn in_machine(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.machine.id()));
        root.join(self.site.path(name).strip_prefix("/").unwrap())
    }

    /// Kills the server and its restart loop.
    fn kill_all(&self) {
        let restart_loop = fs::read_to_string(self.site.path("restart_loop")).unwrap_or_default();
        if let Some(restart_loop) = restart_loop.trim().parse().ok().and_then(Pid::from_raw) {
            // The processes may have ended already.
            kill_process_group(restart_loop, Signal::KILL).ok();
        }
    }
}

/// Prints the logs of mount and server, and the quarantine, if the test failed.
pub(crate) struct Logs<'a>(pub(crate) &'a Site);

impl Drop for Logs<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let logs =
                fs::read_dir(self.0.path("client/.local/state/wirefs")).into_iter().flatten().flatten();
            for path in
                logs.map(|log| log.path()).chain([self.0.path("errors")]).filter(|path| path.is_file())
            {
                eprintln!("{}:\n{}", path.display(), fs::read_to_string(&path).unwrap_or_default());
            }
            eprintln!("{}", self.0.wirefs(&["quarantine", "list"]).stdout);
        }
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.kill_all();
        self.machine.kill().ok();
        self.machine.wait().ok();
    }
}

/// Sets the boot id of the machine.
fn set_boot_id(file: &Path, number: u64) {
    fs::write(file, format!("00000000-0000-4000-8000-{number:012x}\n")).unwrap();
}

fn machine(site: &Site, disk: Option<&LoopDisk>) -> Child {
    let home = if disk.is_some() { "disk" } else { "server" };
    let export = if disk.is_some() { site.path("disk/export") } else { site.export().to_owned() };
    let mut machine = site.on_server(if disk.is_some() { "unshare" } else { "sh" });
    if disk.is_some() {
        machine.args(["--mount", "--propagation", "private", "sh"]);
    } else {
        fs::create_dir_all(site.path("server/state")).unwrap();
    }
    machine.args(["-c", MACHINE]).current_dir(site.path("")).env("RESTART_LOOP", RESTART_LOOP);
    machine.env("DEVICE", disk.map_or("", LoopDisk::path)).env("OPTIONS", disk.map_or("", LoopDisk::options));
    machine.env("EXPORT", export).env("LISTEN", site.url());
    machine.env("XDG_STATE_HOME", site.path(Path::new(home).join("state")));
    machine.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

fn is_stopped(process: Pid) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())).unwrap();
    let state = |stat: String| stat.rsplit(')').next().unwrap().trim_start().starts_with('T');
    // A thread that has ended does not run either.
    tasks.flatten().all(|task| fs::read_to_string(task.path().join("stat")).map_or(true, state))
}
