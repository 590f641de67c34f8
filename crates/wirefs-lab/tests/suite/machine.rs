//! A server that is started again whenever it ends, and the machine that it runs on.

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
use disk::Disk;

/// Each life of the server. The one mount is the only one that was promised anything, so nothing has to wait until others believe it no
/// longer.
const LIVES: &str = "while :; do rm -rf \"$XDG_STATE_HOME\"/wirefs/exports; : >serving; \
     ./wirefs serve \"$EXPORT\" --listen \"$LISTEN\" >serving 2>>errors & echo $! >next; mv next pid; wait $!; done";
/// The machine. What of its name space is mounted from outside is let go before there is a mount of what it serves, which it would keep.
/// It ends with whoever tells it what to do.
///
/// Nothing of the disk is opened in the process of the tests between the cut and the end of the machine: a process that another test
/// starts meanwhile would have it open too, and wait for a mount of this very server before it closes it.
///
/// `shutdown` without `-f` is FS_IOC_SHUTDOWN without a flush of the log; it works for ext4 too.
const MACHINE: &str = r#"
if [ -n "$DEVICE" ]; then
    umount -a -l -t fuse.wirefs 2>none
    mount --bind boot_id /proc/sys/kernel/random/boot_id || exit
fi
while read -r what; do
    case $what in
        disk)
            # The device may still be held for a moment by the mount before.
            for try in 1 2 3 4 5 6 7 8 9; do mount -o "$OPTIONS" "$DEVICE" disk && break; sleep 0.1; done
            mountpoint -q disk || exit
            mkdir -p disk/export disk/state
            ;;
        on)
            setsid sh -c "$LIVES" </dev/null >none 2>&1 &
            echo $! >lives
            ;;
        cut) xfs_io -x -c shutdown disk || exit ;;
        write_log) : >disk/synced && sync disk/synced || exit ;;
        write_all) sync -f disk || exit ;;
        off) until umount --no-canonicalize disk 2>none; do sleep 0.02; done ;;
        reset) ss --kill --tcp state established >none || exit ;;
    esac
    echo "$what"
done
kill -9 -- "-$(cat lives)"
"#;

/// By a shell of its own: a process that this one starts closes what this one has open in the mount before it becomes another program, and
/// would wait for the server.
pub(crate) struct Kept<'a> {
    site: &'a Site,
    disk: Option<Disk>,
    machine: Child,
    tells: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
    boots: Cell<u64>,
}

impl Kept<'_> {
    /// In place of the site's own; `file_system`: the exported directory and the server's state are on a disk of its own.
    pub(crate) fn of(site: &Site, file_system: Option<FileSystem>) -> Kept<'_> {
        site.kill_server();
        fs::create_dir(site.path("disk")).unwrap();
        set_boot_id(&site.path("boot_id"), 1);
        let disk = file_system.map(|kind| Disk::new(&site.path("disk.img"), kind));
        let mut machine = machine(site, disk.as_ref());
        let tells = (machine.stdin.take().unwrap(), BufReader::new(machine.stdout.take().unwrap()));
        let kept = Kept { site, disk, machine, tells: RefCell::new(tells), boots: Cell::new(1) };
        if kept.disk.is_some() {
            kept.tell("disk");
        }
        kept.serve();
        kept
    }

    /// Has the machine do something, and waits until it is done.
    fn tell(&self, what: &str) {
        let (stdin, stdout) = &mut *self.tells.borrow_mut();
        writeln!(stdin, "{what}").unwrap();
        let mut done = String::new();
        stdout.read_line(&mut done).unwrap();
        assert_eq!(done.trim_end(), what);
    }

    /// Its process, once it listens.
    fn listens(&self) -> Option<Pid> {
        let pid = fs::read_to_string(self.site.path("pid")).ok()?;
        let is_ready = fs::read(self.site.path("serving")).is_ok_and(|line| !line.is_empty());
        Pid::from_raw(pid.trim().parse().ok().filter(|_| is_ready)?)
    }

    pub(crate) fn kill(&self) {
        let killed = self.listens().unwrap();
        kill_process(killed, Signal::KILL).unwrap();
        wait_for("another server", || self.listens().is_some_and(|pid| pid != killed));
    }

    /// Resets all of its connections.
    pub(crate) fn reset(&self) {
        self.tell("reset");
    }

    /// Its machine loses power; what its disk does not have is gone.
    pub(crate) fn lose_power(&self) {
        let (disk, process) = (self.disk.as_ref().unwrap(), self.listens().unwrap());
        // It says nothing any more from before the moment of the cut on.
        kill_process(process, Signal::STOP).unwrap();
        wait_for("the server to stop", || is_stopped(process));
        self.tell("cut");
        self.end();
        fs::remove_file(self.site.path("pid")).unwrap();
        self.tell("off");
        wait_for("the end of the machine", || disk.is_free());
    }

    /// Its machine is started again: the disk is mounted, and the server does not run yet.
    pub(crate) fn boot(&self) {
        self.boots.set(self.boots.get() + 1);
        set_boot_id(&self.site.path("boot_id"), self.boots.get());
        self.tell("disk");
    }

    /// Starts the server, and waits until it listens.
    pub(crate) fn serve(&self) {
        self.tell("on");
        wait_for("the server", || self.listens().is_some());
    }

    /// The exported directory as the server's machine sees it, also while no server runs.
    pub(crate) fn on_disk(&self) -> PathBuf {
        self.seen("disk/export")
    }

    /// Writes the server's file system to its disk now.
    pub(crate) fn sync_disk(&self) {
        self.tell("write_all");
    }

    /// Writes the log of the server's file system to its disk now: names and attributes, and not the contents of other files.
    pub(crate) fn sync_log(&self) {
        self.tell("write_log");
    }

    /// What it serves, or a copy of that.
    pub(crate) fn export(&self) -> PathBuf {
        if self.disk.is_none() {
            return self.site.export().to_owned();
        }
        let copy = self.site.path("copy");
        let copied = Command::new("cp").arg("-a").arg(self.seen("disk/export")).arg(&copy).status().unwrap();
        assert!(copied.success());
        copy
    }

    /// Something of the site as the machine sees it.
    fn seen(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.machine.id()));
        root.join(self.site.path(name).strip_prefix("/").unwrap())
    }

    /// Ends the server, and what starts it again.
    fn end(&self) {
        let lives = fs::read_to_string(self.site.path("lives")).unwrap_or_default();
        if let Some(lives) = lives.trim().parse().ok().and_then(Pid::from_raw) {
            // They may have ended.
            kill_process_group(lives, Signal::KILL).ok();
        }
    }
}

/// Prints the logs of mount and server, and the quarantine, where a test has failed.
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
        self.end();
        self.machine.kill().ok();
        self.machine.wait().ok();
    }
}

/// Says that this is another run of the machine.
fn set_boot_id(file: &Path, number: u64) {
    fs::write(file, format!("00000000-0000-4000-8000-{number:012x}\n")).unwrap();
}

fn machine(site: &Site, disk: Option<&Disk>) -> Child {
    let home = if disk.is_some() { "disk" } else { "server" };
    let export = if disk.is_some() { site.path("disk/export") } else { site.export().to_owned() };
    let mut machine = site.on_server(if disk.is_some() { "unshare" } else { "sh" });
    if disk.is_some() {
        machine.args(["--mount", "--propagation", "private", "sh"]);
    } else {
        fs::create_dir_all(site.path("server/state")).unwrap();
    }
    machine.args(["-c", MACHINE]).current_dir(site.path("")).env("LIVES", LIVES);
    machine.env("DEVICE", disk.map_or("", Disk::path)).env("OPTIONS", disk.map_or("", Disk::options));
    machine.env("EXPORT", export).env("LISTEN", site.url());
    machine.env("XDG_STATE_HOME", site.path(Path::new(home).join("state")));
    machine.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

fn is_stopped(process: Pid) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())).unwrap();
    let state = |stat: String| stat.rsplit(')').next().unwrap().trim_start().starts_with('T');
    // One that has ended meanwhile runs as little.
    tasks.flatten().all(|task| fs::read_to_string(task.path().join("stat")).map_or(true, state))
}
