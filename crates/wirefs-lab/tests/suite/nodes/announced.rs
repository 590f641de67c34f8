//! Servers that announce themselves on a segment.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::segment::NodeSegment;

/// Starts a server on the first host.
fn serve(segment: &NodeSegment, words: &[&str]) -> Child {
    let mut command = segment.program(1, segment.path("wirefs").to_str().unwrap());
    let mut server = command.arg("serve").args(words).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(!line.is_empty());
    server
}

fn end(servers: impl IntoIterator<Item = Child>) {
    for mut server in servers {
        // The child is `timeout`, which passes this on and waits.
        kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
        server.wait().unwrap();
    }
}

/// S-178: servers with `--announce` are found on the segment, also two on one machine; others are not.
#[test]
fn announced_servers_are_found_on_the_segment() {
    let segment = NodeSegment::new("announced", 2);
    let share = segment.share(1);
    let share = share.to_str().unwrap();
    let identity = segment.identity(1);
    let config = segment.write(
        "serve.toml",
        &format!("announce = true\nlisten = [\"tls://0.0.0.0:7001\"]\n[[export]]\nname = \"photos\"\npath = \"{share}\"\n"),
    );
    let key_file = segment.write("keys", &identity);
    let serve = |words: &[&str]| serve(&segment, words);
    let keys = ["--authorized", key_file.as_str()];
    let servers = [
        serve(&[&[share, "--announce", "--listen", "tls://0.0.0.0:7000"], &keys[..]].concat()),
        serve(&["--config", &config]),
        serve(&[&[share, "--listen", "tls://0.0.0.0:7002"], &keys[..]].concat()),
    ];
    let text = segment.wirefs(2, &["find-servers", "--wait", "5s"]).succeeds();
    assert!(text.contains("at 10.77.0.1:7000, says that its key is SHA256:"), "{text}");
    assert!(text.contains("wirefs mount tls://10.77.0.1:7001/photos photos"), "{text}");
    assert!(!text.contains("7002"), "{text}");
    let json = segment.wirefs(2, &["find-servers", "--json", "--nic", "eth0", "--wait", "5s"]).succeeds();
    let list: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    assert_eq!((list.len(), &list[1]["exports"][0]), (2, &"photos".into()));
    end(servers);
    segment.wirefs(2, &["find-servers", "--wait", "300ms"]).fails_with("--announce");
}

/// S-178: a server at the address of one card answers on the segment of that card only.
#[test]
fn server_at_one_card_is_announced_there_only() {
    let segment = NodeSegment::new("one-card", 2);
    segment.add_second_cards(true);
    let share = segment.share(1);
    let share = share.to_str().unwrap();
    let key_file = segment.write("keys", &segment.identity(1));
    let serve = |address: &str| {
        serve(&segment, &[share, "--announce", "--authorized", &key_file, "--listen", address])
    };
    // The second server makes the machine join the multicast group on both cards.
    let servers = [serve("tls://10.78.0.1:7000"), serve("tls://0.0.0.0:7001")];
    let found =
        |card: &str| segment.wirefs(2, &["find-servers", "--json", "--nic", card, "--wait", "5s"]).succeeds();
    let (first, second) = (found("eth0"), found("eth1"));
    assert!(first.contains("7001") && !first.contains("7000"), "{first}");
    assert!(second.contains("7001") && second.contains("7000"), "{second}");
    end(servers);
}
