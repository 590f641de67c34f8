//! Whole files: validated, fetched, stored, prefetched.

use crate::gate::{Gate, path};
use crate::proto;
use bytes::Bytes;
use std::os::unix::fs::PermissionsExt;
use tokio_stream::StreamExt;
use tonic::Code;

const MIB: usize = 1 << 20;

fn store(name: &str, data: Bytes) -> proto::StoreRequest {
    proto::StoreRequest { path: name.to_owned().into_bytes().into(), mode: 0o600, data, is_last: false }
}

#[test]
fn a_stored_file_replaces_another_at_its_end_and_is_fetched_in_pieces() {
    let gate = Gate::start(&[]);
    gate.write("f", "old");
    std::fs::set_permissions(gate.file("f"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut client = gate.client();
    let contents: Vec<u8> = (0..700_000_u32).flat_map(u32::to_le_bytes).collect();
    gate.runtime.block_on(async {
        let old = client.lookup(path("f")).await.unwrap().into_inner();
        let mut pieces: Vec<_> =
            contents.chunks(MIB).map(|piece| store("f", Bytes::copy_from_slice(piece))).collect();
        let last = proto::StoreRequest { is_last: true, ..proto::StoreRequest::default() };
        pieces.push(last);
        let stored = client.store(tokio_stream::iter(pieces)).await.unwrap().into_inner();
        assert_eq!((stored.size, stored.mode), (contents.len() as u64, 0o644));
        assert!(std::fs::read(gate.file("f")).unwrap() == contents);
        let validate = |version| proto::ValidateRequest { path: Bytes::from_static(b"f"), version };
        assert!(!client.validate(validate(old.version)).await.unwrap().into_inner().is_current);
        let mut chunks = client.fetch(path("f")).await.unwrap().into_inner();
        let (mut fetched, mut version) = (Vec::new(), None);
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.unwrap();
            assert!(chunk.data.len() <= MIB);
            fetched.extend_from_slice(&chunk.data);
            version = version.or(chunk.attributes.map(|attributes| attributes.version));
        }
        assert!(fetched == contents);
        assert!(client.validate(validate(version.unwrap())).await.unwrap().into_inner().is_current);
        let missing = client.fetch(path("none")).await.unwrap().into_inner().next().await.unwrap();
        assert_eq!(missing.unwrap_err().code(), Code::NotFound);
    });
    assert_eq!(std::fs::read_dir(gate.file("")).unwrap().count(), 1, "nothing temporary is left");
}

#[test]
fn a_client_that_goes_in_the_middle_leaves_the_old_file() {
    let gate = Gate::start(&[]);
    gate.write("f", "old");
    let mut client = gate.client();
    gate.runtime.block_on(async {
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let messages = tokio_stream::wrappers::ReceiverStream::new(receiver);
        let storing = tokio::spawn(async move { client.store(messages).await });
        for _ in 0..4 {
            sender.send(store("f", Bytes::from(vec![7; MIB]))).await.unwrap();
        }
        storing.abort();
        assert!(storing.await.unwrap_err().is_cancelled());
        drop(sender);
        let count = || std::fs::read_dir(gate.file("")).unwrap().count();
        while count() != 1 {
            tokio::task::yield_now().await;
        }
    });
    assert!(std::fs::read(gate.file("f")).unwrap() == b"old");
}

#[test]
fn the_small_files_of_a_directory_come_in_one_request() {
    let gate = Gate::start(&[]);
    for number in 0..50 {
        gate.write(&format!("small-{number}"), format!("contents {number}"));
    }
    gate.write("large", vec![7; 100_000]);
    let mut client = gate.client();
    gate.runtime.block_on(async {
        // Contents that were changed a moment ago are left out, since they may be changing still.
        let files = loop {
            let request = proto::PrefetchRequest { path: Bytes::new(), file_bytes_max: 4096 };
            let files = client.prefetch(request).await.unwrap().into_inner();
            let files: Vec<_> = files.map(Result::unwrap).collect().await;
            assert!(files.len() <= 50, "{}", files.len());
            if files.len() == 50 {
                break files;
            }
        };
        for file in files {
            let name = String::from_utf8(file.name.to_vec()).unwrap();
            assert_eq!(file.data, name.replace("small-", "contents "));
        }
    });
}
