//! Symbolic links of a hostile server: programs must not follow them to files of the client's machine.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::home::{Finished, TestHome, need_root};

const LISTEN: [&str; 4] = ["--listen", "tls://127.0.0.1:0", "--authorized", "authorized"];

/// Links that lead out of a mount, directly or through others, with their targets.
fn leading_out(home: &TestHome) -> [(&'static str, String); 6] {
    let secret = home.text("secret");
    [
        ("absolute", secret),
        ("climbing", "../secret".to_owned()),
        ("d/climbing", "../../secret".to_owned()),
        ("behind", "d/../../secret".to_owned()),
        ("through", "d/root/../secret".to_owned()),
        ("d/behind", "root/d/../../secret".to_owned()),
    ]
}

/// An export with such links and good ones, and a file of the client beside the mountpoint.
fn scene() -> TestHome {
    let home = TestHome::new();
    home.write("secret", "of the client");
    home.write("export/d/f", "of the server");
    for (link, target) in leading_out(&home) {
        symlink(target, home.path("export").join(link)).unwrap();
    }
    for (link, target) in [("down", "d/f"), ("d/up", "../down"), ("d/root", ".."), ("chain", "d/climbing")] {
        symlink(target, home.path("export").join(link)).unwrap();
    }
    home.write("authorized", &home.wirefs(&["identity"]).succeeds());
    home
}

// S-165
#[test]
fn links_of_a_server_lead_nowhere_out_of_its_mount() {
    let home = scene();
    let server = home.serve(&LISTEN);
    home.wirefs(&["mount", &server.address(), "mnt"]).succeeds();
    for good in ["down", "d/up", "d/root/down", "d/root/d/up"] {
        assert_eq!(home.read(&format!("mnt/{good}")), "of the server", "{good}");
    }
    for (link, _) in leading_out(&home) {
        let path = home.path("mnt").join(link);
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink(), "{link}");
        assert_eq!(fs::read_link(&path).unwrap_err().kind(), ErrorKind::PermissionDenied, "{link}");
        let opened = fs::File::options().write(true).truncate(true).open(&path).map(|mut it| it.write(b"x"));
        assert_eq!(opened.unwrap_err().kind(), ErrorKind::PermissionDenied, "{link}");
    }
    let chain = home.path("mnt/chain");
    assert_eq!(fs::read_link(&chain).unwrap().to_str(), Some("d/climbing"));
    assert_eq!(fs::write(&chain, "x").unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert_eq!(home.read("secret"), "of the client");
    assert_eq!(home.log().matches("leads out of the mount").count(), 1);
    // A link that a program has moved up is judged by its new place, whatever the kernel has read of it before.
    symlink("../down", home.path("mnt/d/moved")).unwrap();
    assert_eq!(home.read("mnt/d/moved"), "of the server");
    fs::rename(home.path("mnt/d/moved"), home.path("mnt/moved")).unwrap();
    assert_eq!(fs::read(home.path("mnt/moved")).unwrap_err().kind(), ErrorKind::PermissionDenied);
    home.wirefs(&["umount", "mnt"]).succeeds();
}

/// Adds links to the mountpoint by its absolute path. Returns those that only begin like that.
fn add_absolute_symlinks(home: &TestHome, mountpoint: &Path) -> [&'static str; 3] {
    let mountpoint = mountpoint.to_str().unwrap();
    let export = home.path("export");
    symlink(format!("{mountpoint}/d/f"), export.join("inside")).unwrap();
    symlink(format!("{mountpoint}/d/in/f"), export.join("through-link")).unwrap();
    symlink(mountpoint, export.join("d/in")).unwrap();
    symlink("d/f", export.join("f")).unwrap();
    symlink(format!("{mountpoint}/../secret"), export.join("above")).unwrap();
    symlink(format!("{mountpoint}/d/../../secret"), export.join("d/above")).unwrap();
    symlink(format!("{mountpoint}secret"), export.join("beside")).unwrap();
    home.write("mntsecret", "of the client");
    ["above", "d/above", "beside"]
}

// S-165
#[test]
fn absolute_symlinks_to_the_mountpoint_are_followed() {
    let home = scene();
    home.write("away/mnt/beneath", "of the client");
    symlink("away", home.path("via")).unwrap();
    let away = fs::canonicalize(home.path("away")).unwrap().join("mnt");
    let leading_out = add_absolute_symlinks(&home, &away);
    let server = home.serve(&LISTEN);
    // A relative mountpoint, which leads to its place through a link.
    fs::remove_file(away.join("beneath")).unwrap();
    home.wirefs(&["mount", &server.address(), "via/mnt"]).succeeds();
    for good in ["inside", "through-link"] {
        assert_eq!(home.read(&format!("away/mnt/{good}")), "of the server", "{good}");
    }
    assert_eq!(fs::read_link(away.join("inside")).unwrap(), away.join("d/f"));
    for link in leading_out {
        assert_eq!(fs::read(away.join(link)).unwrap_err().kind(), ErrorKind::PermissionDenied, "{link}");
    }
    home.wirefs(&["umount", "via/mnt"]).succeeds();
}

// S-165
#[test]
fn absolute_symlinks_are_refused_where_the_mountpoint_is_something_else() {
    need_root();
    let home = scene();
    let mnt = fs::canonicalize(home.path("mnt")).unwrap();
    add_absolute_symlinks(&home, &mnt);
    fs::create_dir_all(home.path("bound")).unwrap();
    let server = home.serve(&LISTEN);
    home.wirefs(&["mount", &server.address(), "mnt"]).succeeds();
    let read = |script: &str| {
        let mut shell = home.command("unshare");
        Finished::of(shell.args(["--mount", "sh", "-c", script]))
    };
    // A program that sees the mount at the same path, and also elsewhere.
    assert_eq!(read("mount --bind mnt bound && cat bound/inside").succeeds(), "of the server");
    let hide = "mount --bind mnt bound && mount -t tmpfs none mnt && mkdir mnt/d && echo secret > mnt/d/f";
    let refused = read(&format!("{hide} && cat bound/inside"));
    assert!(refused.stderr.contains("Permission denied") && refused.stdout.is_empty(), "{}", refused.stderr);
    assert_eq!(home.read("mnt/inside"), "of the server");
    home.wirefs(&["umount", "mnt"]).succeeds();
}

// S-165
#[test]
fn links_are_followed_for_a_trusted_server_and_on_request() {
    let home = scene();
    let server = home.serve(&LISTEN);
    let mounted = |options: &[&str]| {
        home.wirefs(&[&["mount", &server.address(), "mnt"], options].concat()).succeeds();
        let read = fs::read_to_string(home.path("mnt/climbing"));
        home.wirefs(&["umount", "mnt"]).succeeds();
        read.map_err(|error| error.kind())
    };
    assert_eq!(mounted(&[]), Err(ErrorKind::PermissionDenied));
    assert_eq!(mounted(&["--symlinks", "all"]).as_deref(), Ok("of the client"));
    assert_eq!(mounted(&["-o", "symlinks=all"]).as_deref(), Ok("of the client"));
    let known = home.read("home/.config/wirefs/known_hosts");
    home.write("home/.config/wirefs/known_hosts", &format!("{} trusted\n", known.trim_end()));
    assert_eq!(mounted(&[]).as_deref(), Ok("of the client"));
    assert_eq!(mounted(&["--symlinks", "inside"]), Err(ErrorKind::PermissionDenied));
}

// S-165
#[test]
fn no_links_are_followed_on_request_and_all_are_shown() {
    need_root();
    let home = scene();
    let server = home.serve(&LISTEN);
    home.wirefs(&["mount", &server.address(), "mnt", "--symlinks", "none"]).succeeds();
    for (link, target) in leading_out(&home) {
        assert_eq!(fs::read_link(home.path("mnt").join(link)).unwrap().to_str(), Some(&*target));
    }
    for link in ["down", "climbing"] {
        let refused = fs::read(home.path("mnt").join(link)).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::LOOP.raw_os_error()));
    }
    home.wirefs(&["umount", "mnt"]).succeeds();
}
