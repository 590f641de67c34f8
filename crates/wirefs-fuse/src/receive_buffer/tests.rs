use super::*;
use wirefs_client::call::Call;

fn request(opcode: u32, operands: &[u8], data: &[u8]) -> Vec<u8> {
    let bytes = u32::try_from(abi::IN_HEADER_BYTES + operands.len() + data.len()).unwrap();
    let mut request = [bytes.to_ne_bytes(), opcode.to_ne_bytes()].concat();
    request.resize(abi::IN_HEADER_BYTES, 0);
    request.extend_from_slice(operands);
    request.extend_from_slice(data);
    request
}

fn write(data: &[u8]) -> Vec<u8> {
    let mut operands = [0; abi::WRITE_IN_BYTES];
    operands[16..20].copy_from_slice(&u32::try_from(data.len()).unwrap().to_ne_bytes());
    request(abi::opcode::WRITE, &operands, data)
}

/// Fills the buffer as the kernel does.
fn arrive(receive_buffer: &mut ReceiveBuffer, request: &[u8]) {
    let (head, rest) = receive_buffer.room();
    let (first, second) = request.split_at(head.len().min(request.len()));
    head[..first.len()].copy_from_slice(first);
    rest[..second.len()].copy_from_slice(second);
}

/// The data of a write, and the call's copy of it after the buffers were reused.
fn written(receive_buffer: &mut ReceiveBuffer, data: &[u8]) -> (bool, bytes::Bytes) {
    let request = write(data);
    arrive(receive_buffer, &request);
    receive_buffer.open(request.len(), |request| match request.decode(Dialect::default()) {
        Ok((_, Body::Call(Call::Write { data, .. }, _))) => {
            (matches!(data, WriteData::Shared(_)), data.to_bytes())
        }
        other => panic!("{other:?}"),
    })
}

#[test]
fn writes_of_all_sizes_keep_their_data() {
    let mut receive_buffer = ReceiveBuffer::new(1 << 20);
    let mut held = Vec::new();
    for round in 0..3u8 {
        for bytes in
            [0, 1, 4096, PACK_BYTES_MIN - 1, PACK_BYTES_MIN, KEEP_BYTES_MIN - 1, KEEP_BYTES_MIN, 1 << 20]
        {
            let data = vec![round + 1; bytes];
            let (is_shared, kept) = written(&mut receive_buffer, &data);
            assert_eq!(is_shared, bytes >= PACK_BYTES_MIN, "{bytes} bytes");
            held.push((data, kept));
        }
    }
    assert!(held.iter().all(|(data, kept)| data == kept));
}

#[test]
fn writes_of_a_megabyte_fill_a_slab() {
    let mut receive_buffer = ReceiveBuffer::new(1 << 20);
    let data = vec![7; 1 << 20];
    let (first, second) = (written(&mut receive_buffer, &data).1, written(&mut receive_buffer, &data).1);
    assert_eq!(second.as_ptr().addr() - first.as_ptr().addr(), 1 << 20);
}

#[test]
fn other_requests_are_joined_if_they_arrive_in_two_pieces() {
    let mut receive_buffer = ReceiveBuffer::new(1 << 20);
    for bytes in [0, 1, HEAD_BYTES - abi::IN_HEADER_BYTES, 41, 300, XATTR_BYTES_MAX + 300] {
        let sent = request(abi::opcode::LOOKUP, &vec![b'x'; bytes], b"");
        arrive(&mut receive_buffer, &sent);
        receive_buffer.open(sent.len(), |request| match request {
            Request::Whole(whole) => assert!(whole == sent, "{bytes} bytes of operands"),
            Request::Write { .. } => panic!("this is no write"),
        });
    }
}

#[test]
fn a_write_with_a_wrong_length_is_malformed() {
    let mut receive_buffer = ReceiveBuffer::new(1 << 20);
    for (at, what) in [(0, "the request's"), (abi::IN_HEADER_BYTES + 16, "the data's")] {
        let mut sent = write(b"data");
        sent[at] += 1;
        arrive(&mut receive_buffer, &sent);
        let decoded = receive_buffer.open(sent.len(), |request| request.decode(Dialect::default()).is_err());
        assert!(decoded, "{what} length");
    }
}
