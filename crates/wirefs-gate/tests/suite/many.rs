//! Many clients, and many requests of one, at a time.

use crate::client::{Client, ROOT, text};
use crate::gate::{Gate, Place};
use std::collections::BTreeSet;
use std::thread;
use wirefs_ninep::{Rmessage, Tmessage};
use wirefs_op::Tag;

#[test]
fn a_hundred_clients_write_files_of_their_own_and_read_all() {
    let place = Place::new();
    let gate = Gate::serve(&place, &[]);
    let contents = |number: usize| format!("written by client {number}").into_bytes();
    let mut clients: Vec<Client> = (0..100).map(|_| Client::linux(&gate)).collect();
    thread::scope(|scope| {
        for (number, client) in clients.iter_mut().enumerate() {
            scope.spawn(move || {
                let fid = client.walk("");
                let name = text(&format!("file-{number}"));
                client.does(Tmessage::Lcreate { fid, name, flags: 2, mode: 0o644, gid: 0 });
                client.write(fid, 0, &contents(number));
                client.clunk(fid);
            });
        }
    });
    thread::scope(|scope| {
        for (number, client) in clients.iter_mut().enumerate() {
            scope.spawn(move || {
                assert_eq!(client.names("", 8000).len(), 102);
                let next = (number + 1) % 100;
                let fid = client.lopen(&format!("file-{next}"), 0);
                assert_eq!(client.read(fid, 0, 100), contents(next));
            });
        }
    });
}

#[test]
fn requests_of_one_client_run_side_by_side_and_each_is_answered() {
    let place = Place::new();
    let gate = Gate::serve(&place, &[]);
    let mut client = Client::linux(&gate);
    let tags: BTreeSet<u16> = (100..200).collect();
    for tag in &tags {
        let name = text(&format!("d-{tag}"));
        client.send(Tag(*tag), &Tmessage::Mkdir { dir: ROOT, name, mode: 0o755, gid: 0 });
    }
    let answered: BTreeSet<u16> = tags
        .iter()
        .map(|_| match client.receive() {
            (tag, Rmessage::Mkdir { .. }) => tag.0,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(answered, tags);
    assert_eq!(client.names("", 8000).len(), 102);
}
