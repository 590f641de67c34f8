//! Sources and addresses: a server's export, wrong words, an orderly end.

use crate::client::{Client, text};
use crate::gate::{Gate, Place};
use wirefs_ninep::Tmessage;

#[test]
fn an_export_of_a_server_is_served_like_a_directory() {
    let place = Place::new();
    std::fs::write(place.tree("f"), "contents").unwrap();
    let listener = wirefs_carrier::Listener::bind(
        &wirefs_carrier::Address::Unix(place.path("op")),
        &wirefs_carrier::ListenOptions::default(),
    );
    let options = wirefs_hostfs::HostOptions::default();
    let tree = wirefs_hostfs::HostTree::open(&place.path("tree"), options).unwrap();
    let options = wirefs_serve::ServeOptions::new(wirefs_op::message::version::BootId(1));
    let server = wirefs_serve::Server::start(std::sync::Arc::new(tree), options).unwrap();
    server.listen(listener.unwrap()).unwrap();
    let gate = Gate::serve_source(&place, &format!("unix://{}", place.path("op").display()), &[]);
    let mut client = Client::linux(&gate);
    let fid = client.lopen("f", 2);
    client.write(fid, 8, b", and more");
    client.clunk(fid);
    assert_eq!(std::fs::read(place.tree("f")).unwrap(), b"contents, and more");
}

#[test]
fn a_gate_that_ends_sends_what_was_written_and_removes_its_socket() {
    let place = Place::new();
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::linux(&gate);
    let fid = client.walk("");
    client.does(Tmessage::Lcreate { fid, name: text("f"), flags: 2, mode: 0o644, gid: 0 });
    client.write(fid, 0, b"not synced");
    let socket = gate.socket.clone();
    assert!(gate.end());
    assert_eq!(std::fs::read(place.tree("f")).unwrap(), b"not synced");
    assert!(!socket.exists());
    // The file of a killed gate does not stop the next one.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    drop(Gate::serve(&place, &[]));
}

#[test]
fn errors_name_the_problem_and_the_next_step() {
    let place = Place::new();
    let tree = place.path("tree");
    let tree = tree.to_str().unwrap();
    let socket = place.path("nine");
    let cases: [(&str, &[&str], &str); 5] = [
        (tree, &["--9p", "0.0.0.0:0"], "--unprotected"),
        (tree, &["--9p", "nonsense"], "write unix:PATH"),
        ("/does/not/exist", &[], "does not exist"),
        ("bad://host/dir", &[], "unknown scheme"),
        ("tls://host/dir", &["--suid"], "the server of this source"),
    ];
    for (source, options, wanted) in cases {
        let output = Gate::command(source, &socket).args(options).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(wanted), "{error}");
    }
}
