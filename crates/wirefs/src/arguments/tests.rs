use super::*;
use clap::CommandFactory;

fn words(text: &str) -> Vec<OsString> {
    text.split(' ').map(OsString::from).collect()
}

#[test]
fn argument_definitions_are_valid() {
    Arguments::command().debug_assert();
}

#[test]
fn call_by_mount_becomes_the_mount_command() {
    for (given, meant) in [
        ("wirefs host:dir /mnt -o rw", "wirefs mount host:dir /mnt -o rw"),
        ("wirefs unix:///s /mnt", "wirefs mount unix:///s /mnt"),
        ("/sbin/mount.fuse.wirefs a:b /mnt -f", "/sbin/mount.fuse.wirefs mount a:b /mnt --fake"),
        ("wirefs status /mnt", "wirefs status /mnt"),
        ("wirefs mount host:dir /mnt", "wirefs mount host:dir /mnt"),
        ("wirefs --help", "wirefs --help"),
        ("wirefs", "wirefs"),
    ] {
        assert_eq!(with_command(words(given)), words(meant), "{given}");
    }
}

#[test]
fn a_span_has_a_unit_or_means_seconds() {
    assert_eq!(parse_span("10"), Ok(Duration::from_secs(10)));
    assert_eq!(parse_span("500ms"), Ok(Duration::from_millis(500)));
    assert_eq!(parse_span("2m"), Ok(Duration::from_secs(120)));
    for text in ["", "s", "-1s", "1h", "0s", "99999999999999999999s", "18446744073709551615m"] {
        assert!(parse_span(text).is_err(), "{text}");
    }
}

#[test]
fn a_size_has_a_unit_or_means_bytes() {
    assert_eq!(parse_size("4096"), Ok(4096));
    assert_eq!(parse_size("64M"), Ok(64 << 20));
    assert_eq!(parse_size("1GiB"), Ok(1 << 30));
    for text in ["", "M", "1T", "-1", "99999999999G"] {
        assert!(parse_size(text).is_err(), "{text}");
    }
}

// S-184, S-185
#[test]
fn clients_over_a_network_get_the_rights_that_are_named_and_local_ones_all() {
    let rights = |arguments: &[&str]| {
        let command = ["wirefs", "serve", "/srv"].iter().chain(arguments);
        let parsed = Arguments::try_parse_from(command).unwrap();
        let Command::Serve(serve) = parsed.command else { panic!("another command") };
        serve.granted_rights()
    };
    let (unix, tls) = (["--listen", "unix:///run/socket"], ["--listen", "tls://[::]:6440"]);
    for network in [&[][..], &tls, &[unix, tls].concat()] {
        assert_eq!(rights(network), ExportRights::default(), "{network:?}");
    }
    for local in [&unix[..], &["--stdio"]] {
        assert_eq!(rights(local), ExportRights::ALL, "{local:?}");
    }
    let named = ExportRights { suid: true, ..ExportRights::default() };
    assert_eq!(rights(&["--suid"]), named);
    assert!(!named.host_options().allows_devices && !named.host_options().cross_mounts);
}
