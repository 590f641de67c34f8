//! pjdfstest and fsx on a mount, as root and as an ordinary user.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::site::{ProgramResult, Site, copy_program};
use crate::sys::with_mapped;

/// An ordinary user: Debian's `daemon`.
const USER: u32 = 1;
const SEEDS: [&str; 3] = ["1", "2", "3"];
const FSX_OPERATIONS: &str = "3000";

/// Cases that may fail on the mount though they pass on the server's file system, each with its reason.
/// docs/SEMANTICS.md documents them.
const EXCLUDED: [(&str, &str); 2] = [
    (
        "link::link_count_max",
        "pathconf(_PC_LINK_MAX) is answered by the C library from the kind of file system, and knows none for FUSE",
    ),
    (
        "open::etxtbsy",
        "open(O_RDONLY | O_TRUNC) of a running program: the kernel sends the truncating open before it looks whether the \
         file is being executed, so the program may die of its missing pages before the kernel answers ETXTBSY",
    ),
];

const PJDFSTEST_CONFIGURATION: &str = r#"
[features]
posix_fallocate = {}
rename_ctime = {}
utime_now = {}
utimensat = {}
[settings]
naptime = 0.01
allow_remount = false
[dummy_auth]
entries = [["nobody", "nogroup"], ["daemon", "daemon"]]
"#;

const FSX_CONFIGURATION: &str = "
flen = 524288
[opsize]
max = 65536
[weights]
close_open = 1.0
invalidate = 1.0
truncate = 2.0
fsync = 0.5
fdatasync = 0.5
posix_fallocate = 1.0
punch_hole = 1.0
sendfile = 1.0
copy_file_range = 2.0
posix_fadvise = 0.5
read = 10.0
write = 10.0
mapread = 5.0
mapwrite = 5.0
";

/// Copies a test tool to a place where every user can run it.
fn tool(site: &Site, name: &str) -> PathBuf {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin").join(name);
    let copy = site.path(name);
    assert!(installed.exists(), "{name} is missing: scripts/need test installs it");
    copy_program(&installed, &copy);
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    copy
}

/// Runs pjdfstest; returns the result of each case, and the output about failed cases.
fn pjdfstest(site: &Site, at: &Path) -> (BTreeMap<String, String>, String) {
    let configuration = site.path("pjdfstest.toml");
    fs::write(&configuration, PJDFSTEST_CONFIGURATION).unwrap();
    let mut command = site.command(tool(site, "pjdfstest"));
    command.arg("-c").arg(configuration).arg("-p").arg(at).args(["-s", "/dev/shm"]);
    let result = ProgramResult::of(&mut command);
    assert!(result.stdout.contains("Summary: "), "{result:?}");
    let words = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned);
        Some((words.next()?, words.next()?)).filter(|(name, _)| name.contains("::"))
    };
    let said: Vec<&str> = result.stdout.lines().filter(|line| !line.ends_with(" ok")).collect();
    (result.stdout.lines().filter_map(words).collect(), said.join("\n"))
}

/// Asserts that every case that passes on the server's file system also passes on the mount; returns the number of
/// cases.
fn check_pjdfstest(site: &Site, options: &[&str]) -> usize {
    let (there, _) = pjdfstest(site, &site.path("local"));
    let (here, said) = pjdfstest(site, &site.mount("mnt", options));
    let passed = |(name, how): &(&String, &String)| {
        *how == "ok" && !EXCLUDED.iter().any(|(excluded, _)| excluded == name)
    };
    let expected: Vec<_> = there.iter().filter(passed).collect();
    let how_here = |name: &&String| here.get(*name).map_or("not run", String::as_str);
    let lost: Vec<_> =
        expected.iter().map(|(name, _)| (name, how_here(name))).filter(|(_, how)| *how != "ok").collect();
    assert!(lost.is_empty(), "not on the mount: {lost:?}\n{said}");
    let is_excluded = |name: &str| EXCLUDED.iter().any(|(excluded, _)| *excluded == name);
    let failed: Vec<_> = here.iter().filter(|(name, how)| *how == "FAILED" && !is_excluded(name)).collect();
    assert!(failed.is_empty(), "{failed:?}\n{said}");
    expected.len()
}

#[test]
fn pjdfstest_passes_for_root() {
    let count = check_pjdfstest(&Site::unix("pjdfstest"), &[]);
    assert!(count >= 383, "only {count} cases ran");
}

#[test]
fn pjdfstest_passes_for_root_without_journal() {
    let count = check_pjdfstest(&Site::unix("pjdwait"), &["--no-journal"]);
    assert!(count >= 383, "only {count} cases ran");
}

#[test]
fn pjdfstest_passes_for_root_in_a_direct_mount() {
    let count = check_pjdfstest(&Site::unix("pjddirect"), &["--mode", "direct"]);
    assert!(count >= 383, "only {count} cases ran");
}

#[test]
fn pjdfstest_passes_for_an_ordinary_user_without_journal() {
    let count = check_pjdfstest(&Site::unix_of_user("pjdwaitu", USER), &["--no-journal"]);
    assert!(count >= 200, "only {count} cases ran");
}

#[test]
fn pjdfstest_passes_for_an_ordinary_user() {
    let count = check_pjdfstest(&Site::unix_of_user("pjdfstest-user", USER), &[]);
    assert!(count >= 200, "only {count} cases ran");
}

fn fsx(site: &Site, options: &[&str]) {
    let mount = site.mount("mnt", options);
    let (tool, configuration) = (tool(site, "fsx"), site.path("fsx.toml"));
    fs::write(&configuration, FSX_CONFIGURATION).unwrap();
    for seed in SEEDS {
        let mut command = site.command(&tool);
        command.args(["-q", "-S", seed, "-N", FSX_OPERATIONS, "-f"]).arg(&configuration);
        command.arg("-P").arg(site.path("local")).arg(mount.join(format!("fsx{seed}")));
        ProgramResult::of(&mut command).succeeds();
    }
}

#[test]
fn fsx_passes_with_a_window() {
    fsx(&Site::unix("fsx-window"), &["--mode", "window"]);
}

#[test]
fn fsx_passes_in_a_strict_mount() {
    fsx(&Site::unix("fsx-strict"), &["--mode", "strict"]);
}

#[test]
fn fsx_passes_in_a_direct_mount() {
    fsx(&Site::unix("fsx-direct"), &["--mode", "direct"]);
}

#[test]
fn fsx_passes_for_an_ordinary_user() {
    fsx(&Site::unix_of_user("fsx-user", USER), &[]);
}

/// One thread stores into each page of a shared mapping while another writes each page with `pwrite` at another offset.
fn check_concurrent_stores_and_writes(site: &Site, options: &[&str]) {
    const PAGE: usize = 4096;
    const PAGES: usize = 1024;
    let mount = site.mount("mnt", options);
    let file =
        fs::File::options().read(true).write(true).create_new(true).open(mount.join("mapped")).unwrap();
    file.set_len((PAGE * PAGES) as u64).unwrap();
    let numbers: Vec<[u8; 8]> = (1..=PAGES as u64).map(u64::to_le_bytes).collect();
    with_mapped(&file, PAGE * PAGES, |bytes| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (page, number) in numbers.iter().enumerate() {
                    file.write_all_at(number, (page * PAGE + 512) as u64).unwrap();
                }
            });
            for (page, number) in bytes.chunks_exact_mut(PAGE).zip(&numbers) {
                page[2560..2568].copy_from_slice(number);
            }
        });
    });
    drop(file);
    let mut expected = vec![0; PAGE * PAGES];
    for (page, number) in expected.chunks_exact_mut(PAGE).zip(&numbers) {
        page[512..520].copy_from_slice(number);
        page[2560..2568].copy_from_slice(number);
    }
    assert!(fs::read(mount.join("mapped")).unwrap() == expected, "on the mount");
    site.unmount(&mount);
    assert!(fs::read(site.export().join("mapped")).unwrap() == expected, "at the server");
}

// S-1
#[test]
fn stores_into_shared_pages_survive_concurrent_writes() {
    check_concurrent_stores_and_writes(&Site::unix("stores"), &[]);
}

// S-1
#[test]
fn stores_into_shared_pages_survive_concurrent_writes_with_a_window() {
    check_concurrent_stores_and_writes(&Site::unix("stores-window"), &["--mode", "window"]);
}
