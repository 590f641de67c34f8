//! Checks of the kernel, programs and rights.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::Finding;

/// CAP_SYS_ADMIN, needed to mount, as a bit of `CapEff`.
const CAP_SYS_ADMIN: u64 = 1 << 21;
/// With a lower limit of open files a server soon rejects opens.
const DESCRIPTORS_MIN: u64 = 4096;
/// The oldest kernels with the FUSE features that mounts need, and with openat2, which servers need.
const MOUNTS_SINCE: (u32, u32) = (5, 4);
const SERVES_SINCE: (u32, u32) = (5, 6);

pub(super) fn checks() -> Vec<Finding> {
    vec![
        device(),
        kernel(),
        rights(),
        fusermount(),
        allow_other(),
        mount_helper(),
        cutting(),
        ssh(),
        descriptors(),
    ]
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn device() -> Finding {
    const CHECK: &str = "/dev/fuse";
    match OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        Ok(_) => Finding::ok(CHECK, "can be opened"),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Finding::bad(CHECK, "may not be opened by this user", "as root: chmod 0666 /dev/fuse")
        }
        Err(error) => Finding::bad(
            CHECK,
            format!("cannot be opened: {error}"),
            "as root: modprobe fuse; in a container: start it with --device /dev/fuse --cap-add SYS_ADMIN",
        ),
    }
}

fn kernel() -> Finding {
    const CHECK: &str = "kernel";
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or_default());
    let version = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let has_fuse = std::fs::read_to_string("/proc/filesystems")
        .is_ok_and(|known| known.lines().any(|line| line.trim_start_matches("nodev").trim() == "fuse"));
    let found = format!("Linux {release}");
    if version < MOUNTS_SINCE {
        Finding::bad(CHECK, found, "mounting needs FUSE 7.31: install Linux 5.4 or newer")
    } else if version < SERVES_SINCE {
        Finding::warn(CHECK, found, "mounting works; serving needs openat2: install Linux 5.6 or newer")
    } else if !has_fuse {
        Finding::warn(CHECK, format!("{found}, FUSE is not loaded"), "as root: modprobe fuse")
    } else {
        Finding::ok(CHECK, format!("{found}, with FUSE"))
    }
}

fn rights() -> Finding {
    const CHECK: &str = "rights";
    if !is_root() {
        return Finding::ok(CHECK, "an ordinary user; mounts through fusermount3");
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or_default();
    if bits & CAP_SYS_ADMIN == 0 {
        return Finding::bad(
            CHECK,
            "root, but without the right to mount",
            "in a container: start it with --cap-add SYS_ADMIN",
        );
    }
    Finding::ok(CHECK, "root; mounts directly, for all users where the server runs as root too")
}

fn fusermount() -> Finding {
    const CHECK: &str = "fusermount3";
    let install = "install the package fuse3";
    let Some(path) = find_program("fusermount3") else {
        return match is_root() {
            true => Finding::warn(CHECK, "not installed; ordinary users cannot mount", install),
            false => Finding::bad(CHECK, "not installed; only root can mount without it", install),
        };
    };
    let is_set_uid =
        std::fs::metadata(&path).is_ok_and(|found| found.uid() == 0 && found.mode() & 0o4000 != 0);
    if is_set_uid {
        return Finding::ok(CHECK, path.display().to_string());
    }
    let found = format!("{} is not set-user-id root", path.display());
    let mend = format!("as root: chown root {0} && chmod u+s {0}", path.display());
    if is_root() { Finding::warn(CHECK, found, mend) } else { Finding::bad(CHECK, found, mend) }
}

fn allow_other() -> Finding {
    const CHECK: &str = "allow_other";
    let text = std::fs::read_to_string("/etc/fuse.conf").unwrap_or_default();
    let is_allowed = text.lines().any(|line| line.trim() == "user_allow_other");
    if is_root() {
        Finding::ok(CHECK, "root can admit other users to its mounts")
    } else if is_allowed {
        Finding::ok(CHECK, "you can admit other users to your mounts")
    } else {
        Finding::ok(
            CHECK,
            "only you can use your mounts (to change that: user_allow_other in /etc/fuse.conf)",
        )
    }
}

fn mount_helper() -> Finding {
    const CHECK: &str = "mount -t";
    let own = ["/sbin", "/usr/sbin"]
        .iter()
        .map(|dir| Path::new(dir).join("mount.fuse.wirefs"))
        .find(|path| path.exists());
    if let Some(own) = own {
        return Finding::ok(CHECK, format!("mount -t fuse.wirefs uses {}", own.display()));
    }
    let has_helper = ["/sbin/mount.fuse", "/usr/sbin/mount.fuse"].iter().any(|path| Path::new(path).exists());
    // The search path of mount(8), independent of the caller.
    let is_found = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .any(|dir| is_program(&Path::new(dir).join("wirefs")));
    match (has_helper, is_found) {
        (true, true) => Finding::ok(CHECK, "mount -t fuse.wirefs and /etc/fstab work"),
        (false, _) => Finding::warn(
            CHECK,
            "mount.fuse is missing; /etc/fstab does not work",
            "install the package fuse3",
        ),
        (true, false) => Finding::warn(
            CHECK,
            "wirefs is not in a system directory such as /usr/local/bin; /etc/fstab does not work",
            "as root: make install, or copy wirefs to /usr/local/bin",
        ),
    }
}

fn cutting() -> Finding {
    const CHECK: &str = "cutting mounts";
    let has_control = std::fs::read_to_string("/proc/self/mounts")
        .is_ok_and(|mounts| mounts.lines().any(|line| line.split(' ').nth(2) == Some("fusectl")));
    if has_control || is_root() {
        return Finding::ok(CHECK, "umount -f can cut a mount off");
    }
    Finding::warn(
        CHECK,
        "/sys/fs/fuse/connections is not mounted; umount -f ends the mount's process instead",
        "as root: mount -t fusectl none /sys/fs/fuse/connections",
    )
}

fn ssh() -> Finding {
    match find_program("ssh") {
        Some(path) => Finding::ok("ssh", path.display().to_string()),
        None => Finding::warn(
            "ssh",
            "not installed; sources of the form host:path do not work",
            "install the package openssh-client",
        ),
    }
}

fn descriptors() -> Finding {
    const CHECK: &str = "open files";
    // wirefs raises its own limit as far as possible.
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most < DESCRIPTORS_MIN => Finding::warn(
            CHECK,
            format!("at most {most} for a server"),
            "raise `nofile` in /etc/security/limits.conf, or LimitNOFILE= of the service",
        ),
        Some(most) => Finding::ok(CHECK, format!("at most {most}")),
        None => Finding::ok(CHECK, "no limit"),
    }
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
