use super::*;

fn chosen(list: &str) -> Result<Chosen> {
    let mut chosen = Chosen::default();
    for option in split(list) {
        chosen.take(&option)?;
    }
    Ok(chosen)
}

#[test]
fn what_fstab_and_mount_write_is_taken() {
    let chosen =
        chosen("rw,nosuid,nodev,noexec,noatime,_netdev,noauto,user,nofail,x-systemd.automount,x-gvfs-show")
            .unwrap();
    assert!(!chosen.read_only && !chosen.suid && !chosen.dev);
    assert_eq!(chosen.extra, ["noexec", "noatime"]);
}

#[test]
fn the_last_of_two_options_counts() {
    assert!(chosen("rw,ro").unwrap().read_only);
    assert!(!chosen("ro,rw").unwrap().read_only);
    assert_eq!(chosen("hard,deadline=3s").unwrap().deadline, Some(Duration::from_secs(3)));
    assert_eq!(chosen("deadline=3s,hard").unwrap().deadline, None);
}

#[test]
fn values_are_read() {
    let chosen =
        chosen("mode=strict,port=2222,uid=7,gid=8,cache=1M,identity=/k,ssh_command=ssh -o A=b\\,c").unwrap();
    assert_eq!(chosen.mode.name, "strict");
    assert_eq!((chosen.port, chosen.uid, chosen.gid), (Some(2222), Some(7), Some(8)));
    assert_eq!(chosen.cache_bytes_max, 1 << 20);
    assert_eq!(chosen.identity, Some(PathBuf::from("/k")));
    assert_eq!(chosen.ssh_command.as_deref(), Some("ssh -o A=b,c"));
}

#[test]
fn whose_disk_fsync_waits_for_is_read() {
    let waits = |options: &str| chosen(options).unwrap().fsync;
    assert_eq!(waits("journal"), Fsync::Server);
    assert_eq!(waits("journal,fsync=journal"), Fsync::Journal);
    assert_eq!(waits("journal,fsync=journal,fsync=server"), Fsync::Server);
    assert_eq!(waits("fsync=each"), Fsync::Each);
    assert!(chosen("fsync=never").is_err());
}

#[test]
fn an_unknown_option_is_named_with_those_that_exist() {
    let error = chosen("rw,colour=blue").unwrap_err().to_string();
    assert!(error.contains("`colour=blue`") && error.contains("deadline="), "{error}");
    let error = chosen("mode").unwrap_err().to_string();
    assert!(error.contains("mode=VALUE"), "{error}");
    let error = chosen("deadline=soon").unwrap_err().to_string();
    assert!(error.contains("deadline=soon") && error.contains("10s"), "{error}");
}
