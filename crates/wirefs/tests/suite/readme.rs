//! Each block of commands in the README, the manual and PINGFS works.

use crate::home::{Finished, TestHome, WIREFS, need_root};
use crate::over_ssh::{FAKE_SSH, fake_ssh};

/// A block of a page: its kind, and its lines.
struct Block {
    kind: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(kind), None) => open = Some(Block { kind: kind.to_owned(), text: String::new() }),
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(block)) => open = Some(Block { text: format!("{}{line}\n", block.text), ..block }),
            (None, None) => {}
        }
    }
    blocks
}

/// Returns the text of the blocks of one kind.
fn of_kind(page: &str, kind: &str) -> Vec<String> {
    blocks(page).into_iter().filter(|block| block.kind == kind).map(|block| block.text).collect()
}

/// Runs commands in a home, and returns their output.
fn run(home: &TestHome, script: &str) -> String {
    let script = format!("set -eu\n{script}");
    let ran = home.run_in_group(home.command("sh").args(["-c", &script]));
    assert_eq!(ran.code, Some(0), "{script}\n{ran:?}");
    ran.stdout
}

/// Adds a wait for servers, as a user would wait.
fn await_servers(script: &str) -> String {
    let wait = "until grep -q serving server.log; do kill -0 $! || exit 1; sleep 0.05; done";
    let served = script.lines().map(|line| match line.strip_suffix(" &") {
        Some(command) => format!("{command} >server.log 2>&1 &\n{wait}"),
        None => line.to_owned(),
    });
    served.collect::<Vec<_>>().join("\n")
}

/// The tests below run all blocks of commands. Text is a drawing, or a command for several machines, which
/// `pings/group.rs` of the lab runs.
#[test]
fn each_block_has_a_kind_and_a_test() {
    let kinds = |page| blocks(page).into_iter().map(|block| block.kind).collect::<Vec<_>>();
    assert_eq!(kinds("README.md"), ["sh", "sh", "sh", "sh"]);
    assert_eq!(kinds("docs/MANUAL.md"), ["fstab", "sh"]);
    assert_eq!(kinds("docs/PINGFS.md"), ["text", "sh", "text"]);
}

#[test]
fn first_command_of_the_readme_mounts_over_ssh() {
    let home = TestHome::new();
    home.write("export/dir/a", "far away\n");
    fake_ssh(&home, FAKE_SSH);
    std::fs::rename(home.path("fake-ssh"), home.path("ssh")).unwrap();
    let mount = of_kind("README.md", "sh").swap_remove(0);
    let shown = run(&home, &format!("PATH=$PWD:$PATH\n{mount}cat mnt/a\nwirefs umount mnt\n"));
    assert!(shown.ends_with("far away\n"), "{shown}");
}

/// Other tests run `make run`: `make_run.rs`, and `make_run.rs` of the lab with a round-trip time.
#[test]
fn readme_installs_from_source() {
    let home = TestHome::new();
    let install = of_kind("README.md", "sh").swap_remove(1);
    let lines: Vec<&str> = install.lines().collect();
    let commands: Vec<&str> = lines.iter().filter_map(|line| line.split('#').next()).map(str::trim).collect();
    assert_eq!(commands, ["make install PREFIX=$HOME/.local", "make run", "make run RTT=85"]);
    let real_home = std::env::var("HOME").unwrap();
    // The toolchain, whose version is checked, may be in the real home. Nothing is built: the program is given.
    let prefix = home.text("home/.local");
    let script = format!(
        "cd {}/../..\nHOME={real_home} BINARY={WIREFS} DESTDIR= {}",
        env!("CARGO_MANIFEST_DIR"),
        commands[0].replace("$HOME/.local", &prefix)
    );
    if rustix::process::geteuid().is_root() {
        // Root's units and mount.wirefs are outside of the prefix.
        let staged = script.replace("DESTDIR=", &format!("DESTDIR={}", home.text("stage")));
        run(&home, &staged);
        std::fs::rename(home.path(&format!("stage{prefix}")), &prefix).unwrap();
    } else {
        run(&home, &script);
    }
    let installed = format!("{prefix}/bin/wirefs");
    assert!(Finished::of(home.command(&installed).arg("--version")).succeeds().starts_with("wirefs "));
    for file in ["man/man1/wirefs-mount.1", "bash-completion/completions/wirefs", "wirefs/grafana.json"] {
        assert!(home.path(&format!("home/.local/share/{file}")).exists(), "{file}");
    }
}

#[test]
fn readme_commands_work() {
    let home = TestHome::new();
    // The system chose this port for another listener just now, so it is free.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = of_kind("README.md", "sh")
        .split_off(2)
        .concat()
        .replace("wirefs serve shared", &format!("wirefs serve shared --listen tls://127.0.0.1:{port}"))
        .replace("tls://localhost/", &format!("tls://127.0.0.1:{port}/"));
    assert!(script.contains("wirefs mount"), "the README mounts nothing: {script}");
    assert!(run(&home, &await_servers(&script)).contains("hello from the mount"));
    assert!(!home.is_mounted());
}

#[test]
fn commands_of_the_manual_work() {
    let home = TestHome::new();
    let script = of_kind("docs/MANUAL.md", "sh").concat();
    assert!(script.contains("wirefs checkpoint"), "{script}");
    assert!(run(&home, &script).contains("one\none\n"));
    assert!(!home.is_mounted());
}

#[test]
fn fstab_line_of_the_manual_mounts() {
    let home = TestHome::new();
    home.write("export/a", "text");
    let _server = home.serve(&["--listen", &home.url()]);
    let line = of_kind("docs/MANUAL.md", "fstab").concat();
    let [source, mountpoint, kind, options, "0", "0"] = line.split_whitespace().collect::<Vec<_>>()[..]
    else {
        panic!("{line}")
    };
    assert!(source.starts_with("tls://") && mountpoint.starts_with('/'), "{line}");
    // As mount(8) calls the helper of this type.
    let mut helper = home.command("/usr/sbin/mount.fuse3");
    helper.args([&home.url(), &home.text("mnt"), "-t", kind, "-o", options]);
    Finished::of(&mut helper).succeeds();
    assert_eq!(home.status()["mode"], "window=5000ms");
    home.wirefs(&["umount", "mnt"]).succeeds();
}

#[test]
fn commands_of_pingfs_work_on_one_machine() {
    need_root();
    let home = TestHome::new();
    let shown = run(&home, &of_kind("docs/PINGFS.md", "sh").concat());
    assert!(shown.contains("kept in flight") && shown.contains("127.0.0.1"), "{shown}");
}
