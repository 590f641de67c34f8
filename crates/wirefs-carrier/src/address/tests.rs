use super::*;

fn host(host: &str, port: u16) -> HostPort {
    HostPort { host: host.into(), port }
}

fn ssh(user: Option<&str>, host: &str, path: &[u8]) -> Source {
    let login = Login { user: user.map(Into::into), host: host.into(), port: None };
    Source { address: Address::Ssh(login), path: path.to_vec() }
}

fn source(address: Address, path: &[u8]) -> Source {
    Source { address, path: path.to_vec() }
}

#[test]
fn each_form_of_a_source_is_parsed() {
    let cases: [(&[u8], Source); 17] = [
        (b"host:dir", ssh(None, "host", b"dir")),
        (b"me@host:/srv", ssh(Some("me"), "host", b"/srv")),
        (b"host:", ssh(None, "host", b"")),
        (b"host:~", ssh(None, "host", b"")),
        (b"host:~/src", ssh(None, "host", b"src")),
        (b"host:~other/src", ssh(None, "host", b"~other/src")),
        (b"host:a:b", ssh(None, "host", b"a:b")),
        (b"me@[fe80::1]:x", ssh(Some("me"), "fe80::1", b"x")),
        (b"me@corp@host:x", ssh(Some("me@corp"), "host", b"x")),
        (b"host:\xff\xfe", ssh(None, "host", b"\xff\xfe")),
        (b"tls://example.org", source(Address::Tls(host("example.org", 6440)), b"")),
        (b"tls://example.org:7000/a/b", source(Address::Tls(host("example.org", 7000)), b"a/b")),
        (b"tls://[::1]", source(Address::Tls(host("::1", 6440)), b"")),
        (b"tls://[::1]:80//a", source(Address::Tls(host("::1", 80)), b"a")),
        (b"tls://h/%20\xff", source(Address::Tls(host("h", 6440)), b"%20\xff")),
        (b"tcp+plain://10.0.0.1:1/x", source(Address::TcpPlain(host("10.0.0.1", 1)), b"x")),
        (b"unix:///run/wirefs.sock", source(Address::Unix("/run/wirefs.sock".into()), b"")),
    ];
    for (text, expected) in cases {
        let shown = String::from_utf8_lossy(text);
        assert_eq!(Source::parse(text).unwrap(), expected, "{shown}");
    }
}

#[test]
fn ssh_urls_name_a_port_and_an_absolute_path() {
    let at = |port, path: &[u8]| {
        let login = Login { user: Some("me".into()), host: "host".into(), port };
        Source { address: Address::Ssh(login), path: path.to_vec() }
    };
    for (text, expected) in [
        ("ssh://me@host:2222/srv/a", at(Some(2222), b"/srv/a")),
        ("sftp://me@host:2222/srv/a", at(Some(2222), b"/srv/a")),
        ("ssh://me@host/srv/a", at(None, b"/srv/a")),
        ("ssh://me@host", at(None, b"")),
        ("ssh://me@host/", at(None, b"/")),
        ("ssh://me@host/~/a", at(None, b"a")),
        ("ssh://me@host:22/~", at(Some(22), b"")),
    ] {
        assert_eq!(text.parse::<Source>().unwrap(), expected, "{text}");
    }
    for wrong in ["ssh://", "ssh://host:0/a", "ssh://host:port/a", "ssh://-x/a", "ssh://@host/a"] {
        assert!(wrong.parse::<Source>().is_err(), "{wrong}");
    }
}

#[test]
fn printed_sources_parse_to_the_same_value() {
    for text in [
        "host:dir",
        "me@[::1]:/srv/a b",
        "host:",
        "ssh://me@host:2222",
        "ssh://me@host:2222/srv/a",
        "ssh://host:2222/~/a",
        "tls://h:6440",
        "tls://[::1]:1/a/b",
        "tcp+plain://h:1/x",
        "unix:///run/s",
        "ether://52:54:00:12:34:56@eth0/a/b",
        "ether://52:54:00:12:34:56,52:54:00:12:34:57@eth0,eth1",
    ] {
        assert_eq!(text.parse::<Source>().unwrap().to_string(), text);
    }
    for text in ["tls://h:6440", "host:", "unix:///run/s", "tcp+plain://[::]:9", "ether://eth0,eth1"] {
        assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
    }
}

#[test]
fn errors_name_the_form_to_write() {
    let cases = [
        ("/srv/data", "is a path of this machine; write HOST:PATH"),
        ("./a:b", "is a path of this machine"),
        ("", "is a path of this machine"),
        ("host", "has no colon after the host; write host:path, or host: for the home"),
        (":path", "names no host"),
        ("-oProxyCommand=x:dir", "is no host name"),
        ("-l@host:dir", "is no user name"),
        ("@host:dir", "is no user name"),
        ("a b:dir", "is no host name"),
        ("tcp://host:1", "write tls://host:port, or tcp+plain://host:port for no encryption"),
        ("http://host", "has an unknown scheme"),
        ("tls://", "names no host"),
        ("tls://me@host", "names a user, which only ssh has"),
        ("tls://::1", "write [::1]:port"),
        ("tls://[::1", "a bracket that is not closed"),
        ("tls://[::1]x", "between the bracket and the port"),
        ("tls://host:", "a port that is not a number"),
        ("tls://host:70000", "a port that is not a number"),
        ("tls://host:+1", "a port that is not a number"),
        ("tcp+plain://host", "names no port"),
        ("ether://", "names no network card"),
        ("ether://52:54:00:12:34@eth0", "a hardware address that is none"),
        ("ether://53:54:00:12:34:56@eth0", "a hardware address that is none"),
        ("ether://52:54:00:12:34:56@eth0,eth0", "or one twice"),
        ("ether://02:00:00:00:00:01,02:00:00:00:00:02@eth0", "one for each"),
        ("unix://socket", "with three slashes"),
        ("host:a\0b", "contains a NUL byte"),
    ];
    for (text, expected) in cases {
        let error = text.parse::<Source>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    let error = "tls://host/dir".parse::<Address>().unwrap_err().to_string();
    assert!(error.contains("has a path, where only an address is meant"), "{error}");
}
