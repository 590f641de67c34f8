//! Mount options.

use rustix::mount::MountFlags;

/// Mount options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// The source in `df` and `/proc/mounts`.
    pub fs_name: String,
    /// The type is displayed as `fuse.` with this suffix.
    pub subtype: String,
    /// Whether other users may use the mount. An ordinary user needs `user_allow_other` in `/etc/fuse.conf`.
    pub allow_other: bool,
    /// Whether the kernel checks permission bits; if not, each check is an Access call.
    pub default_permissions: bool,
    /// Whether the mount is read-only.
    pub read_only: bool,
    /// Whether setuid programs take effect. Only root may request it.
    pub suid: bool,
    /// Whether device nodes take effect. Only root may request it.
    pub dev: bool,
    /// The largest read in bytes; `None`: the kernel's default.
    pub max_read: Option<u32>,
    /// Further options as in `fstab`: kernel flags (`noexec`, `noatime`, `sync` …), FUSE options, and options of
    /// `mount(8)` and systemd, which are ignored.
    pub extra: Vec<String>,
}

impl Default for MountOptions {
    /// A mount for its owner alone; permissions checked by the kernel, no setuid, no devices.
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

/// Options by their recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Split {
    /// Flags of `mount(2)`.
    pub(super) flags: MountFlags,
    /// Options for FUSE.
    pub(super) data: Vec<String>,
}

/// Options that are flags of `mount(2)`: name, flag, whether it sets the flag.
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

/// Options for `mount(8)` and systemd, which the kernel does not know.
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

    /// The options for `fusermount3 -o`.
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
