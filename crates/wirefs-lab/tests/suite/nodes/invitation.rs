//! An invitation by code alone, on a segment.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use super::segment::{NodeSegment, wait_for};

/// S-174: a code alone finds the inviting machine on the segment.
#[test]
fn code_alone_finds_the_inviting_machine() {
    let segment = NodeSegment::new("invitation", 2);
    let mut invite = segment.program(1, segment.path("wirefs").to_str().unwrap());
    invite.args(["node", "invite", "--name", "linus1"]).stdout(Stdio::piped());
    let mut inviting = invite.spawn().unwrap();
    let mut code = String::new();
    BufReader::new(inviting.stdout.take().unwrap()).read_line(&mut code).unwrap();
    let up = |number: usize, more: &[&str]| {
        let (name, share, net) = (format!("linus{number}"), segment.share(number), segment.net(number));
        let (share, net) = (share.to_str().unwrap(), net.to_str().unwrap());
        let words = ["up", "--name", &name, "--share", share, "--at", net];
        segment.node(number, &[&words, more].concat())
    };
    let label = if code.starts_with("00") { "11" } else { "00" };
    let other = format!("{label}{}", &code.trim()[2..]);
    up(2, &["--join", &other]).fails_with("no machine on this network segment");
    up(2, &["--join", code.trim()]).succeeds();
    wait_for("the end of the invitation", || inviting.try_wait().unwrap().is_some());
    assert!(inviting.wait().unwrap().success());
    up(1, &[]).succeeds();
    assert_eq!(segment.read(1, "linus2/file"), "of 2\n");
    assert_eq!(segment.read(2, "linus1/file"), "of 1\n");
}
