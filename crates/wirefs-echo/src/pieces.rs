//! Splits a block into pieces and restores it from a sufficient number of them: Reed–Solomon code with a
//! Cauchy matrix.
//!
//! The data pieces are the block itself. Each parity piece is a linear combination of the data pieces with
//! the factors 1 / (x + y), where x is the number of the parity piece and y that of the data piece, all
//! different. Every square submatrix of a Cauchy matrix is invertible, so any sufficient set of pieces yields
//! the rest.
//!
//! No library is used: those for thousands of pieces (FFT-based) take a millisecond to restore one piece, the
//! time of 150 packets; those for few pieces are slower than this code, and old. See
//! `docs/design/0014-erasure-code.md`.
//!
//! # Source
//! J. Blömer et al., "An XOR-based erasure-resilient coding scheme" (1995), over GF(256).

use bytes::Bytes;

use crate::field;
use crate::limits::LANES_MAX;
use crate::redundancy::Shape;

/// The x of the first parity piece. The y of data pieces are below.
const PARITY_BASE: u8 = 128;

const _: () = assert!(LANES_MAX <= PARITY_BASE as usize, "x and y are all different");

/// Returns the factor of a data piece in a parity piece.
fn factor(parity: usize, data: usize) -> u8 {
    // Both numbers are below 128, see LANES_MAX.
    field::invert((PARITY_BASE + parity as u8) ^ data as u8)
}

/// A block, and its pieces on demand.
#[derive(Debug)]
pub(crate) struct BlockEncoder {
    shape: Shape,
    piece_bytes: usize,
    /// The block, padded with zeros to whole pieces.
    padded: Bytes,
}

impl BlockEncoder {
    /// Splits a block. Copies no bytes for copies, and if no padding is needed.
    pub(crate) fn new(shape: Shape, block: &Bytes) -> BlockEncoder {
        let piece_bytes = shape.piece_bytes(block.len());
        let whole = piece_bytes * shape.needed;
        let padded = if block.len() == whole {
            block.clone()
        } else {
            let mut padded = Vec::with_capacity(whole);
            padded.extend_from_slice(block);
            padded.resize(whole, 0);
            Bytes::from(padded)
        };
        BlockEncoder { shape, piece_bytes, padded }
    }

    /// Returns the piece of a lane. For copies it shares the memory of the block.
    pub(crate) fn piece(&self, lane: usize) -> Bytes {
        if self.shape.is_copies() {
            return self.padded.clone();
        }
        let range = |data: usize| data * self.piece_bytes..(data + 1) * self.piece_bytes;
        match lane.checked_sub(self.shape.needed) {
            None => self.padded.slice(range(lane)),
            Some(parity) => {
                let mut piece = vec![0; self.piece_bytes];
                for data in 0..self.shape.needed {
                    field::add_multiple(
                        &mut piece,
                        self.padded.get(range(data)).unwrap_or_default(),
                        factor(parity, data),
                    );
                }
                Bytes::from(piece)
            }
        }
    }
}

/// Restores a block from pieces of equal size, indexed by lane. Returns `None` if there are too few.
pub(crate) fn reassemble(shape: Shape, block_bytes: usize, pieces: &[Option<Bytes>]) -> Option<Bytes> {
    if shape.is_copies() {
        return pieces.iter().flatten().next().cloned();
    }
    let (data, parity) = pieces.split_at_checked(shape.needed)?;
    let restored = restore(data, parity, shape.piece_bytes(block_bytes))?;
    let mut restored = restored.into_iter();
    let mut block = Vec::with_capacity(shape.piece_bytes(block_bytes) * shape.needed);
    for piece in data {
        match piece {
            Some(piece) => block.extend_from_slice(piece),
            None => block.extend_from_slice(&restored.next()?),
        }
    }
    block.truncate(block_bytes);
    (block.len() == block_bytes).then(|| Bytes::from(block))
}

/// Computes the missing data pieces in order from as many parity pieces. Returns `None` if there are too few.
fn restore(data: &[Option<Bytes>], parity: &[Option<Bytes>], piece_bytes: usize) -> Option<Vec<Vec<u8>>> {
    let missing: Vec<usize> =
        (0..data.len()).filter(|&number| data.get(number).is_some_and(Option::is_none)).collect();
    let here = parity.iter().enumerate().filter_map(|(number, piece)| Some((number, piece.as_ref()?)));
    let mut rows = Vec::with_capacity(missing.len());
    for (number, piece) in here.take(missing.len()) {
        // Subtracting the known data pieces leaves a combination of the missing ones.
        let mut rest = piece.to_vec();
        rest.resize(piece_bytes, 0);
        for (place, piece) in
            data.iter().enumerate().filter_map(|(place, piece)| Some((place, piece.as_ref()?)))
        {
            field::add_multiple(&mut rest, piece, factor(number, place));
        }
        let factors: Vec<u8> = missing.iter().map(|&place| factor(number, place)).collect();
        rows.push((factors, rest));
    }
    (rows.len() == missing.len()).then(|| solve(rows))?
}

/// Solves the linear equations by Gaussian elimination. Returns `None` for a singular matrix, which a Cauchy
/// matrix never is.
fn solve(mut rows: Vec<(Vec<u8>, Vec<u8>)>) -> Option<Vec<Vec<u8>>> {
    for column in 0..rows.len() {
        let pivot = (column..rows.len()).find(|&row| value(&rows, row, column) != 0)?;
        rows.swap(column, pivot);
        let (factors, rest) = rows.get(column)?.clone();
        let inverse = field::invert(*factors.get(column)?);
        let (mut unit, mut solved) = (vec![0; factors.len()], vec![0; rest.len()]);
        field::add_multiple(&mut unit, &factors, inverse);
        field::add_multiple(&mut solved, &rest, inverse);
        for row in (0..rows.len()).filter(|&row| row != column) {
            let factor = value(&rows, row, column);
            let (factors, rest) = rows.get_mut(row)?;
            field::add_multiple(factors, &unit, factor);
            field::add_multiple(rest, &solved, factor);
        }
        *rows.get_mut(column)? = (unit, solved);
    }
    Some(rows.into_iter().map(|(_, solved)| solved).collect())
}

fn value(rows: &[(Vec<u8>, Vec<u8>)], row: usize, column: usize) -> u8 {
    rows.get(row).and_then(|(factors, _)| factors.get(column)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
