//! `wirefs mount grpc://…`: the mount starts this program, which speaks Op to it and gRPC to the gate.

use crate::gate::{GATE, Gate};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wirefs_lab::port::ReservedPort;

/// A mount of a gate, unmounted when dropped.
pub(crate) struct Mount {
    home: PathBuf,
}

impl Mount {
    pub(crate) fn new(gate: &Gate, scheme: &str, options: &[&str]) -> Mount {
        let home = gate.file("").with_extension(format!("home-{}", options.len()));
        fs::create_dir_all(home.join("mnt")).unwrap();
        let mount = Mount { home };
        let source = format!("{scheme}://{}/", gate.address);
        mount.wirefs(&[&["mount", &source, "mnt"], options].concat());
        mount
    }

    fn wirefs(&self, arguments: &[&str]) {
        let program = Path::new(GATE).with_file_name("wirefs");
        assert!(program.exists(), "build the command first: cargo build -p wirefs");
        let output = Command::new(program)
            .args(arguments)
            .current_dir(&self.home)
            .env("HOME", &self.home)
            .env("XDG_RUNTIME_DIR", &self.home)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.join("mnt").join(name)
    }

    fn unmount(self) {
        self.wirefs(&["umount", "mnt"]);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Without effect after `unmount`.
        let _ended = Command::new("fusermount3").args(["-u", "-z", "-q"]).arg(self.path("")).status();
        let _gone = fs::remove_dir_all(&self.home);
    }
}

#[test]
fn a_gate_is_mounted_and_used_as_a_directory() {
    let gate = Gate::start(&[]);
    let mount = Mount::new(&gate, "grpc", &[]);
    fs::create_dir(mount.path("d")).unwrap();
    let contents: Vec<u8> = (0..600_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::write(mount.path("d/large"), &contents).unwrap();
    symlink("large", mount.path("d/link")).unwrap();
    fs::hard_link(mount.path("d/large"), mount.path("d/hard")).unwrap();
    fs::rename(mount.path("d/large"), mount.path("d/moved")).unwrap();
    fs::set_permissions(mount.path("d/moved"), fs::Permissions::from_mode(0o604)).unwrap();
    assert!(fs::read(gate.file("d/moved")).unwrap() == contents);
    assert!(fs::read(mount.path("d/link").with_file_name("hard")).unwrap() == contents);
    assert_eq!(fs::read_link(mount.path("d/link")).unwrap(), Path::new("large"));
    let found = fs::metadata(mount.path("d/moved")).unwrap();
    assert_eq!((found.mode() & 0o7777, found.nlink(), found.len()), (0o604, 2, contents.len() as u64));
    let mut file = File::options().read(true).append(true).open(mount.path("d/moved")).unwrap();
    file.write_all(b"the end").unwrap();
    file.sync_all().unwrap();
    file.seek(SeekFrom::End(-7)).unwrap();
    let mut end = String::new();
    file.read_to_string(&mut end).unwrap();
    assert_eq!(end, "the end");
    file.set_len(3).unwrap();
    drop(file);
    assert_eq!(fs::read(gate.file("d/hard")).unwrap(), contents[..3]);
    for name in ["d/moved", "d/hard", "d/link"] {
        fs::remove_file(mount.path(name)).unwrap();
    }
    fs::remove_dir(mount.path("d")).unwrap();
    assert_eq!(fs::remove_file(mount.path("none")).unwrap_err().raw_os_error(), Some(2));
    assert_eq!(fs::read_dir(gate.file("")).unwrap().count(), 0);
    mount.unmount();
}

#[test]
fn a_long_directory_is_listed_once_and_whole() {
    let mut gate = Gate::start(&[]);
    let mut names: Vec<_> =
        (0..3000).map(|number| format!("a rather long name of file {number:05}")).collect();
    for name in &names {
        File::create(gate.file(name)).unwrap();
    }
    // A gate that ran meanwhile may show the directory as it was until it has noticed the changes (S-5).
    gate.kill_and_restart();
    let mount = Mount::new(&gate, "grpc", &[]);
    let mut listed: Vec<_> = fs::read_dir(mount.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    listed.sort();
    names.sort();
    assert_eq!(listed, names);
    mount.unmount();
}

#[test]
fn locks_of_a_mounted_gate_exclude_another_mount() {
    let gate = Gate::start(&[]);
    gate.write("f", "contents");
    let (one, other) = (Mount::new(&gate, "grpc", &[]), Mount::new(&gate, "grpc", &["--mode", "strict"]));
    let open = |mount: &Mount| File::options().read(true).write(true).open(mount.path("f")).unwrap();
    let (first, second) = (open(&one), open(&other));
    first.lock().unwrap();
    second.try_lock().unwrap_err();
    first.unlock().unwrap();
    second.lock().unwrap();
    first.try_lock().unwrap_err();
    drop((first, second));
    one.unmount();
    other.unmount();
}

// S-194
#[test]
fn a_gate_that_is_killed_and_restarted_is_a_pause_for_its_mount_and_loses_nothing() {
    let mut gate = Gate::start(&[]);
    let mount = Mount::new(&gate, "grpc", &[]);
    // Not this process, which starts gates: a child that has inherited an open file of the mount waits at its close.
    let mut dd = Command::new("dd")
        .args(["bs=10000", "iflag=fullblock", "conv=fsync", "status=none"])
        .arg(format!("of={}", mount.path("f").display()))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut writer = dd.stdin.take().unwrap();
    let piece = |number: usize| vec![number as u8; 10_000];
    for number in 0..100 {
        writer.write_all(&piece(number)).unwrap();
        if number % 25 == 10 {
            gate.kill_and_restart();
        }
    }
    gate.kill_and_restart();
    drop(writer);
    assert!(dd.wait().unwrap().success());
    let expected: Vec<u8> = (0..100).flat_map(piece).collect();
    assert!(fs::read(gate.file("f")).unwrap() == expected);
    mount.unmount();
}

#[test]
fn a_gate_that_is_not_there_is_named_with_the_next_step() {
    let home = std::env::temp_dir().join(format!("wirefs-grpc-nobody-{}", std::process::id()));
    fs::create_dir_all(home.join("mnt")).unwrap();
    // A port that nobody listens at while this value lives.
    let port = ReservedPort::unused().unwrap();
    let source = format!("grpc://127.0.0.1:{}/", port.number());
    let program = Path::new(GATE).with_file_name("wirefs");
    let output =
        Command::new(program).args(["mount", &source, "mnt"]).current_dir(&home).env("HOME", &home).output();
    let output = output.unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot connect to") && said.contains("start the gate there"), "{said}");
    fs::remove_dir_all(&home).unwrap();
}
