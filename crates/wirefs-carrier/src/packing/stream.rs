//! The two ends of the Zstandard stream (RFC 8878) of one direction.

use std::io;

use bytes::Bytes;
use wirefs_op::limits::PACKED_BYTES_MAX;
use wirefs_op::packed::WINDOW_LOG;
use zstd::stream::raw::{CParameter, DParameter, Decoder, Encoder, InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::compress_bound;

/// The level: faster than any line that needs it. Higher ones gain little on source texts.
const LEVEL: i32 = 1;

/// The flush or end of a frame takes fewer bytes.
const END_BYTES_MAX: usize = 64;

/// Compresses. Takes about 1 MiB.
pub(super) struct Packer {
    encoder: Encoder<'static>,
}

impl Packer {
    pub(super) fn new() -> io::Result<Packer> {
        let mut encoder = Encoder::new(LEVEL)?;
        encoder.set_parameter(CParameter::WindowLog(WINDOW_LOG))?;
        Ok(Packer { encoder })
    }

    /// Returns the next part of the stream, from which the other end gets all of `plain`.
    pub(super) fn pack(&mut self, plain: &[u8]) -> io::Result<Bytes> {
        let mut packed = vec![0; compress_bound(plain.len()) + END_BYTES_MAX];
        let (mut read, mut written) = (0, 0);
        while read < plain.len() {
            let mut input = InBuffer::around(plain.get(read..).unwrap_or_default());
            let mut output = OutBuffer::around(packed.get_mut(written..).unwrap_or_default());
            self.encoder.run(&mut input, &mut output)?;
            let (taken, made) = (input.pos(), output.pos());
            (read, written) = (read + taken, written + made);
            if taken == 0 && made == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        written += write_out(packed.get_mut(written..).unwrap_or_default(), |rest| self.encoder.flush(rest))?;
        packed.truncate(written);
        Ok(packed.into())
    }

    /// Returns the end of the stream's frame. The other end frees its memory with it.
    pub(super) fn end(mut self) -> io::Result<Bytes> {
        let mut packed = vec![0; END_BYTES_MAX];
        let written = write_out(&mut packed, |rest| self.encoder.finish(rest, true))?;
        packed.truncate(written);
        Ok(packed.into())
    }
}

/// Repeats `step` until nothing is left in the encoder. Returns the bytes written.
fn write_out(
    packed: &mut [u8],
    mut step: impl FnMut(&mut OutBuffer<'_, [u8]>) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut written = 0;
    loop {
        let mut output = OutBuffer::around(packed.get_mut(written..).unwrap_or_default());
        let remaining = step(&mut output)?;
        let made = output.pos();
        written += made;
        if remaining == 0 {
            return Ok(written);
        }
        if made == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
    }
}

/// Decompresses. Takes about twice the window of the stream.
pub(super) struct Unpacker {
    decoder: Decoder<'static>,
    /// Whether the stream's frame has ended: the next one needs nothing of it.
    pub(super) has_ended: bool,
}

impl Unpacker {
    pub(super) fn new() -> io::Result<Unpacker> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
        Ok(Unpacker { decoder, has_ended: false })
    }

    /// Returns the plain bytes of the next part of the stream, at most [`PACKED_BYTES_MAX`].
    ///
    /// # Errors
    /// It is none, or it holds more.
    pub(super) fn unpack(&mut self, packed: &[u8]) -> io::Result<Bytes> {
        // One byte more, to see whether there is more.
        let mut plain = vec![0; PACKED_BYTES_MAX + 1];
        let (mut read, mut written) = (0, 0);
        loop {
            let mut input = InBuffer::around(packed.get(read..).unwrap_or_default());
            let mut output = OutBuffer::around(plain.get_mut(written..).unwrap_or_default());
            let expected = self.decoder.run(&mut input, &mut output)?;
            let (taken, made) = (input.pos(), output.pos());
            (read, written) = (read + taken, written + made);
            self.has_ended = expected == 0;
            if written > PACKED_BYTES_MAX {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long"));
            }
            // With room left, the decoder has given all that it has.
            if read == packed.len() {
                break;
            }
            if taken == 0 && made == 0 {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "its stream has ended"));
            }
        }
        plain.truncate(written);
        // Most are short: the rest of the buffer would stay.
        plain.shrink_to_fit();
        Ok(plain.into())
    }
}
