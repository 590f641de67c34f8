//! Requests that the server rejects.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::symlink;

use rustix::io::Errno;
use wirefs_lab::LinkProfile;

use super::errno;
use crate::site::Site;

#[test]
fn read_only_export_rejects_every_change() {
    let site = Site::unix_with("read-only", &["--read-only"]);
    fs::write(site.export().join("f"), "kept").unwrap();
    fs::create_dir(site.export().join("d")).unwrap();
    let mount = site.mount("mnt", &[]);
    let f = mount.join("f");
    let attempts = [
        fs::write(mount.join("new"), ""),
        OpenOptions::new().write(true).open(&f).map(drop),
        File::options().append(true).open(&f).map(drop),
        fs::create_dir(mount.join("new")),
        fs::remove_dir(mount.join("d")),
        fs::remove_file(&f),
        fs::rename(&f, mount.join("g")),
        fs::hard_link(&f, mount.join("g")),
        symlink("f", mount.join("g")),
        fs::set_permissions(&f, std::os::unix::fs::PermissionsExt::from_mode(0o600)),
        std::os::unix::fs::chown(&f, Some(1), None),
        rustix::fs::setxattr(&f, "user.x", b"y", rustix::fs::XattrFlags::empty()).map_err(Into::into),
    ];
    for (number, attempt) in attempts.into_iter().enumerate() {
        let error = attempt.expect_err(&format!("attempt {number}"));
        assert_eq!(errno(&error), Some(Errno::ROFS), "attempt {number}: {error}");
    }
    assert_eq!(fs::read_to_string(f).unwrap(), "kept");
}

#[test]
fn unknown_key_is_rejected_with_the_line_to_add() {
    let site = Site::tls_unauthorized("stranger", LinkProfile::default());
    let key = site.wirefs(&["identity"]).succeeds();
    site.authorize("# nobody yet\n");
    site.start_server();
    let at = site.path("mnt");
    fs::create_dir(&at).unwrap();
    let words = ["mount", &site.source(), at.to_str().unwrap()];
    let refused = site.wirefs(&words);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let line = key.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    assert!(refused.stderr.contains(&format!("wirefs allow {line}")), "{refused:?}\nwanted: {line}");
    assert!(!site.is_mounted(&at));
    // With the line added, the mount succeeds.
    site.authorize(&key);
    site.kill_server();
    site.start_server();
    let mount = site.mount("mnt", &[]);
    assert_eq!(fs::read_dir(mount).unwrap().count(), 0);
}

#[test]
fn server_with_another_key_is_rejected() {
    let site = Site::tls("impostor", LinkProfile::default());
    let mount = site.mount("mnt", &[]);
    site.unmount(&mount);
    site.kill_server();
    fs::remove_file(site.path("server/.config/wirefs/identity.pem")).unwrap();
    site.start_server();
    let refused = site.wirefs(&["mount", &site.source(), mount.to_str().unwrap()]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("known_hosts"), "{refused:?}");
    assert!(!site.is_mounted(&mount));
}

#[test]
fn no_path_escapes_the_export() {
    let site = Site::tls("escape", LinkProfile::default());
    fs::write(site.path("secret"), "secret").unwrap();
    symlink(site.path("secret"), site.export().join("absolute")).unwrap();
    symlink("../secret", site.export().join("relative")).unwrap();
    fs::create_dir(site.export().join("d")).unwrap();
    symlink("..", site.export().join("d/up")).unwrap();
    let at = site.path("mnt");
    fs::create_dir(&at).unwrap();
    for path in ["..", "../secret", "d/../..", "absolute", "relative", "d/up/../.."] {
        let source = format!("{}/{path}", site.url());
        let refused = site.wirefs(&["mount", &source, at.to_str().unwrap()]);
        assert_ne!(refused.code, Some(0), "{path}: {refused:?}");
        assert!(!site.is_mounted(&at), "{path}");
    }
    // The kernel resolves symlinks of a mount on the client's own files.
    let mount = site.mount("mnt", &["--symlinks", "all"]);
    assert_eq!(fs::read_link(mount.join("relative")).unwrap().to_str(), Some("../secret"));
    assert_eq!(
        fs::read_to_string(mount.join("relative")).unwrap(),
        "secret",
        "the client's own file, beside mnt"
    );
    fs::rename(site.export().join("d"), site.path("moved-away")).unwrap();
    fs::write(site.path("moved-away/f"), "secret").unwrap();
    crate::site::wait_for("the directory that left to be gone", || fs::metadata(mount.join("d/f")).is_err());
}
