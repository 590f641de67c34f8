//! Hosts: isolated networks, shared files, and removal on drop.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::{Command, Stdio};

use wirefs_lab::{Lab, LinkProfile};

use crate::linked_hosts::linked_hosts;

fn namespace_exists(name: &str) -> bool {
    Path::new("/run/netns").join(name).exists()
}

#[test]
fn hosts_have_separate_ports_and_a_working_loopback() {
    let lab = Lab::new("ports").unwrap();
    let hosts = ["one", "two"].map(|name| lab.host(name).unwrap());
    let held =
        hosts.each_ref().map(|host| host.run(|| TcpListener::bind("127.0.0.1:7000")).unwrap().unwrap());
    for host in &hosts {
        host.run(|| TcpStream::connect("127.0.0.1:7000")).unwrap().unwrap();
    }
    assert_eq!(held.map(|listener| listener.local_addr().unwrap().port()), [7000, 7000]);
}

#[test]
fn mounts_of_a_host_are_visible_to_the_caller() {
    let lab = Lab::new("mounts").unwrap();
    let host = lab.host("host").unwrap();
    let at = std::env::temp_dir().join(format!("wirefs-lab-mounts-{}", std::process::id()));
    fs::create_dir(&at).unwrap();
    assert!(host.command("mount").args(["-t", "tmpfs", "none"]).arg(&at).status().unwrap().success());
    fs::write(at.join("seen"), "inside").unwrap();
    let inside = host.command("cat").arg(at.join("seen")).output().unwrap();
    assert!(Command::new("umount").arg(&at).status().unwrap().success());
    fs::remove_dir(&at).unwrap();
    assert_eq!(inside.stdout, b"inside");
}

#[test]
fn patch_joins_two_hosts_without_an_emulator() {
    let lab = Lab::new("patch").unwrap();
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    let patch = lab.patch(&a, &b).unwrap();
    let listener = b.run(|| TcpListener::bind((patch.address_b, 7000))).unwrap().unwrap();
    a.run(|| TcpStream::connect((patch.address_b, 7000))).unwrap().unwrap();
    listener.accept().unwrap();
    let devices = a.command("ip").args(["-brief", "address"]).output().unwrap();
    let devices = String::from_utf8(devices.stdout).unwrap();
    assert!(devices.contains(&patch.address_a.to_string()), "{devices}");
}

#[test]
fn dropping_a_lab_removes_hosts_and_kills_their_processes() {
    let w = linked_hosts("gone", LinkProfile::default());
    let names = [w.server.name().to_owned(), w.client.name().to_owned()];
    assert!(names.iter().all(|name| namespace_exists(name)));
    let mut child = w.client.command("cat").stdin(Stdio::piped()).spawn().unwrap();
    drop(w);
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert!(!names.iter().any(|name| namespace_exists(name)));
}

#[test]
fn panic_removes_all_hosts() {
    let mut names = Vec::new();
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let w = linked_hosts("panic", LinkProfile::default());
        names.push(w.server.name().to_owned());
        w.server.run(|| panic!("on purpose")).unwrap();
        drop(w.lab);
    }));
    assert!(panicked.is_err());
    assert!(names.len() == 1 && !namespace_exists(&names[0]));
}

#[test]
fn next_lab_removes_leftovers_of_a_dead_process() {
    let mut dead = Command::new("true").spawn().unwrap();
    let stale = format!("wirefs-lab-{}-0-stale-host", dead.id());
    dead.wait().unwrap();
    assert!(Command::new("ip").args(["netns", "add", &stale]).status().unwrap().success());
    // A process in the namespace: prints a line, then sleeps for ever.
    let script = "echo runs; exec sleep infinity";
    let mut left = wirefs_lab::namespace::command_inside(&stale, "sh")
        .unwrap()
        .args(["-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(left.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let lab = Lab::new("next").unwrap();
    assert!(!namespace_exists(&stale));
    assert_eq!(left.wait().unwrap().signal(), Some(9));
    drop(lab);
}
