//! How a mount is made.

use rustix::mount::MountFlags;

/// How a mount is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// What `df` and `/proc/mounts` show as the source.
    pub fs_name: String,
    /// The type is shown as `fuse.` and this.
    pub subtype: String,
    /// Other users than the one who mounts may use it. An ordinary user needs `user_allow_other` in `/etc/fuse.conf`.
    pub allow_other: bool,
    /// The kernel checks permission bits before it asks; else each check is an Access call.
    pub default_permissions: bool,
    /// Refuses all changes.
    pub read_only: bool,
    /// Set-user-id programs take effect. Only root can ask for it.
    pub suid: bool,
    /// Device nodes take effect. Only root can ask for it.
    pub dev: bool,
    /// Bytes that one read carries at most; `None`: what the kernel likes.
    pub max_read: Option<u32>,
    /// Further options as in `fstab`: flags of the kernel's (`noexec`, `noatime`, `sync` …), FUSE's own, and those that only
    /// `mount(8)` and systemd read, which are passed over.
    pub extra: Vec<String>,
}

impl Default for MountOptions {
    /// A mount for its maker alone, permissions checked by the kernel, no set-user-id, no devices.
    fn default() -> MountOptions {
        MountOptions {
            fs_name: "wirefs".to_owned(),
            subtype: "wirefs".to_owned(),
            allow_other: false,
            default_permissions: true,
            read_only: false,
            suid: false,
            dev: false,
            max_read: None,
            extra: Vec::new(),
        }
    }
}

/// Options parted by who takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Split {
    /// The kernel's own flags.
    pub(super) flags: MountFlags,
    /// FUSE's options.
    pub(super) data: Vec<String>,
}

/// Options that the kernel takes as flags: name, flag, whether it sets it.
pub(super) const FLAGS: [(&str, MountFlags, bool); 20] = [
    ("ro", MountFlags::RDONLY, true),
    ("rw", MountFlags::RDONLY, false),
    ("nosuid", MountFlags::NOSUID, true),
    ("suid", MountFlags::NOSUID, false),
    ("nodev", MountFlags::NODEV, true),
    ("dev", MountFlags::NODEV, false),
    ("noexec", MountFlags::NOEXEC, true),
    ("exec", MountFlags::NOEXEC, false),
    ("sync", MountFlags::SYNCHRONOUS, true),
    ("async", MountFlags::SYNCHRONOUS, false),
    ("dirsync", MountFlags::DIRSYNC, true),
    ("noatime", MountFlags::NOATIME, true),
    ("atime", MountFlags::NOATIME, false),
    ("nodiratime", MountFlags::NODIRATIME, true),
    ("diratime", MountFlags::NODIRATIME, false),
    ("relatime", MountFlags::RELATIME, true),
    ("norelatime", MountFlags::RELATIME, false),
    ("strictatime", MountFlags::STRICTATIME, true),
    ("lazytime", MountFlags::LAZYTIME, true),
    ("nosymfollow", MountFlags::NOSYMFOLLOW, true),
];

/// Options for `mount(8)` and systemd that mean nothing to the kernel.
const FOR_OTHERS: [&str; 9] =
    ["defaults", "auto", "noauto", "user", "nouser", "users", "nofail", "_netdev", "owner"];

impl MountOptions {
    pub(super) fn split(&self) -> Split {
        let mut flags = MountFlags::empty();
        flags.set(MountFlags::RDONLY, self.read_only);
        flags.set(MountFlags::NOSUID, !self.suid);
        flags.set(MountFlags::NODEV, !self.dev);
        let mut data = Vec::new();
        if self.allow_other {
            data.push("allow_other".to_owned());
        }
        if self.default_permissions {
            data.push("default_permissions".to_owned());
        }
        if let Some(bytes) = self.max_read {
            data.push(format!("max_read={bytes}"));
        }
        for option in self.extra.iter().flat_map(|options| options.split(',')) {
            if option.is_empty() || option.starts_with("x-") || FOR_OTHERS.contains(&option) {
                continue;
            }
            match FLAGS.iter().find(|(name, ..)| *name == option) {
                Some(&(_, flag, set)) => flags.set(flag, set),
                None if data.iter().any(|known| known == option) => {}
                None => data.push(option.to_owned()),
            }
        }
        Split { flags, data }
    }

    /// The options as `fusermount3 -o` takes them.
    pub(super) fn for_helper(&self) -> String {
        let Split { flags, data } = self.split();
        let mut options =
            vec![format!("fsname={}", escape(&self.fs_name)), format!("subtype={}", escape(&self.subtype))];
        let named = FLAGS.iter().filter(|&&(_, flag, set)| set && flags.contains(flag));
        options.extend(named.map(|&(name, ..)| name.to_owned()));
        options.extend(data);
        options.join(",")
    }
}

/// A comma would end the option.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace(',', "\\,")
}
