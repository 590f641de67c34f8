use super::*;

fn settings(list: &str) -> Result<MountSettings> {
    let mut settings = MountSettings::default();
    for option in split(list) {
        settings.take(&option)?;
    }
    Ok(settings)
}

#[test]
fn options_of_fstab_and_mount_are_accepted() {
    let settings =
        settings("rw,nosuid,nodev,noexec,noatime,_netdev,noauto,user,nofail,x-systemd.automount,x-gvfs-show")
            .unwrap();
    assert!(!settings.read_only && !settings.suid && !settings.dev);
    assert_eq!(settings.extra, ["noexec", "noatime"]);
}

#[test]
fn the_last_of_two_options_counts() {
    assert!(settings("rw,ro").unwrap().read_only);
    assert!(!settings("ro,rw").unwrap().read_only);
    assert_eq!(settings("hard,deadline=3s").unwrap().deadline, Some(Duration::from_secs(3)));
    assert_eq!(settings("deadline=3s,hard").unwrap().deadline, None);
}

#[test]
fn values_are_read() {
    let settings =
        settings("mode=strict,port=2222,uid=7,gid=8,cache=1M,identity=/k,ssh_command=ssh -o A=b\\,c")
            .unwrap();
    assert_eq!(settings.mode.name, "strict");
    assert_eq!((settings.port, settings.uid, settings.gid), (Some(2222), Some(7), Some(8)));
    assert_eq!(settings.cache_bytes_max, 1 << 20);
    assert_eq!(settings.identity, Some(PathBuf::from("/k")));
    assert_eq!(settings.ssh_command.as_deref(), Some("ssh -o A=b,c"));
}

#[test]
fn fsync_option_is_parsed() {
    let waits = |options: &str| settings(options).unwrap().fsync;
    assert_eq!(waits("journal"), Fsync::Server);
    assert_eq!(waits("journal,fsync=journal"), Fsync::Journal);
    assert_eq!(waits("journal,fsync=journal,fsync=server"), Fsync::Server);
    assert_eq!(waits("fsync=each"), Fsync::Each);
    assert!(settings("fsync=never").is_err());
}

#[test]
fn an_unknown_option_is_named_with_those_that_exist() {
    let error = settings("rw,colour=blue").unwrap_err().to_string();
    assert!(error.contains("`colour=blue`") && error.contains("deadline="), "{error}");
    let error = settings("mode").unwrap_err().to_string();
    assert!(error.contains("mode=VALUE"), "{error}");
    let error = settings("deadline=soon").unwrap_err().to_string();
    assert!(error.contains("deadline=soon") && error.contains("10s"), "{error}");
}
