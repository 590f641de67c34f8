//! Attributes, names, contents in pieces.

use crate::gate::{Gate, errno, path};
use crate::proto;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use tokio_stream::StreamExt;
use tonic::Code;

fn at(name: &str) -> bytes::Bytes {
    name.to_owned().into_bytes().into()
}

fn create_request(name: &str, mode: u32, exclusive: bool) -> proto::CreateRequest {
    proto::CreateRequest { path: at(name), mode, exclusive, ..proto::CreateRequest::default() }
}

fn write_request(name: &str, data: &str) -> proto::WriteRequest {
    proto::WriteRequest { path: at(name), data: at(data), ..proto::WriteRequest::default() }
}

// S-191
#[test]
fn files_are_created_written_committed_read_and_removed() {
    let gate = Gate::start(&[]);
    let mut client = gate.client();
    gate.runtime.block_on(async {
        let create = |exclusive| create_request("f", 0o640, exclusive);
        let made = client.create(create(true)).await.unwrap().into_inner();
        assert_eq!((made.kind, made.mode, made.size), (proto::Kind::File as i32, 0o640, 0));
        let again = client.create(create(true)).await.unwrap_err();
        assert_eq!((again.code(), errno(&again)), (Code::AlreadyExists, 17));
        client.create(create(false)).await.unwrap();
        let write = write_request("f", "hello world");
        let written = client.write(write).await.unwrap().into_inner();
        assert_eq!(written.count, 11);
        let committed = client.commit(path("f")).await.unwrap().into_inner();
        assert_eq!(committed.verifier, written.verifier);
        assert_eq!(std::fs::read(gate.file("f")).unwrap(), b"hello world");
        let read = |offset, count| proto::ReadRequest { path: at("f"), offset, count, object: None };
        assert_eq!(client.read(read(6, 100)).await.unwrap().into_inner().data, at("world"));
        assert_eq!(client.read(read(6, 2)).await.unwrap().into_inner().data, at("wo"));
        client.remove(path("f")).await.unwrap();
        assert!(!gate.file("f").exists());
        let gone = client.lookup(path("f")).await.unwrap_err();
        assert_eq!((gone.code(), errno(&gone)), (Code::NotFound, 2));
    });
}

#[test]
fn names_are_made_linked_renamed_listed_and_removed() {
    let gate = Gate::start(&[]);
    let mut client = gate.client();
    gate.runtime.block_on(async {
        client.make_directory(create_request("d", 0o750, true)).await.unwrap();
        let create = create_request("d/f", 0o644, true);
        client.create(create).await.unwrap();
        client.write(write_request("d/f", "12345")).await.unwrap();
        client.symlink(proto::SymlinkRequest { path: at("d/s"), target: at("to/nowhere") }).await.unwrap();
        assert_eq!(client.read_link(path("d/s")).await.unwrap().into_inner().target, at("to/nowhere"));
        let two = |from: &str, to: &str| proto::TwoPaths { from: at(from), to: at(to) };
        assert_eq!(client.link(two("d/f", "hard")).await.unwrap().into_inner().links, 2);
        client.rename(two("d/f", "d/g")).await.unwrap();
        let mut listing = client.read_directory(path("d")).await.unwrap().into_inner();
        let mut names = Vec::new();
        while let Some(entry) = listing.next().await {
            let entry = entry.unwrap();
            names.push((entry.name, entry.attributes.unwrap().size));
        }
        names.sort();
        assert_eq!(names, [(at("g"), 5), (at("s"), 10)]);
        let found = client.find(proto::FindRequest { path: at(""), depth: 0 }).await.unwrap().into_inner();
        let mut found: Vec<_> = found.map(|entry| entry.unwrap().name).collect().await;
        found.sort();
        assert_eq!(found, [at("d"), at("d/g"), at("d/s"), at("hard")]);
        let mut no_directory =
            client.find(proto::FindRequest { path: at("d/g"), depth: 0 }).await.unwrap().into_inner();
        assert_eq!(errno(&no_directory.next().await.unwrap().unwrap_err()), 20);
        let full = client.remove_directory(path("d")).await.unwrap_err();
        assert_eq!((full.code(), errno(&full)), (Code::FailedPrecondition, 39));
        for name in ["d/g", "d/s", "hard"] {
            client.remove(path(name)).await.unwrap();
        }
        client.remove_directory(path("d")).await.unwrap();
        assert!(!gate.file("d").exists());
    });
}

#[test]
fn attributes_are_read_and_changed() {
    let gate = Gate::start(&["--suid"]);
    gate.write("f", "contents");
    let mut client = gate.client();
    gate.runtime.block_on(async {
        let before = client.get_attributes(path("f")).await.unwrap().into_inner();
        let set = proto::SetAttributesRequest {
            path: at("f"),
            mode: Some(0o4711),
            size: Some(3),
            modified: Some(proto::Time { seconds: 2000, nanoseconds: 5 }),
            ..proto::SetAttributesRequest::default()
        };
        let after = client.set_attributes(set).await.unwrap().into_inner();
        assert_eq!((after.mode, after.size), (0o4711, 3));
        assert_ne!(after.version, before.version);
        let local = std::fs::metadata(gate.file("f")).unwrap();
        assert_eq!(
            (local.permissions().mode() & 0o7777, local.mtime(), local.ino()),
            (0o4711, 2000, after.inode)
        );
        assert!(client.stat_fs(path("")).await.unwrap().into_inner().blocks > 0);
        for wrong in ["..", "a/../f", "f/x", "f\0"] {
            let refused = client.lookup(path(wrong)).await.unwrap_err();
            assert!([20, 22, 2].contains(&errno(&refused)), "{wrong}: {refused:?}");
        }
    });
}

#[test]
fn a_read_only_gate_refuses_changes() {
    let gate = Gate::start(&["--read-only"]);
    gate.write("f", "contents");
    let mut client = gate.client();
    gate.runtime.block_on(async {
        let refused = client.remove(path("f")).await.unwrap_err();
        assert_eq!((refused.code(), errno(&refused)), (Code::PermissionDenied, 30));
        assert_eq!(client.lookup(path("f")).await.unwrap().into_inner().size, 8);
    });
}

#[test]
fn an_object_that_was_replaced_is_stale_and_writes_append_and_pipes_are_made() {
    let gate = Gate::start(&[]);
    let mut client = gate.client();
    gate.runtime.block_on(async {
        let made = client.create(create_request("f", 0o644, true)).await.unwrap().into_inner();
        let object = |found: &proto::Attributes| {
            Some(proto::Identity {
                file_system: found.file_system,
                inode: found.inode,
                generation: found.generation,
            })
        };
        let append = proto::WriteRequest { append: true, object: object(&made), ..write_request("f", "abc") };
        client.write(append.clone()).await.unwrap();
        let written = client.write(append.clone()).await.unwrap().into_inner();
        assert_eq!((written.count, written.attributes.unwrap().size), (3, 6));
        client.create(create_request("g", 0o644, true)).await.unwrap();
        let rename = proto::TwoPaths { from: at("g"), to: at("f") };
        client.rename(rename).await.unwrap();
        let stale = client.write(append).await.unwrap_err();
        assert_eq!((stale.code(), errno(&stale)), (Code::Aborted, 116));
        let pipe =
            proto::CreateRequest { kind: proto::Kind::Fifo.into(), ..create_request("p", 0o600, true) };
        let pipe = client.create(pipe).await.unwrap().into_inner();
        assert_eq!((pipe.kind(), pipe.mode), (proto::Kind::Fifo, 0o600));
        client.commit(path("")).await.unwrap();
        let is_read = client.read(proto::ReadRequest { path: at("p"), ..proto::ReadRequest::default() });
        assert_eq!(errno(&is_read.await.unwrap_err()), 6);
    });
}
