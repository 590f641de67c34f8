//! A block cut into pieces, and put together again from enough of them: Reed–Solomon over a Cauchy matrix.
//!
//! The first pieces are the block itself, cut. Each further piece is a sum of multiples of these, with the factors
//! 1 / (x + y), x a number of the further piece and y one of the cut piece, all different. Any square part of such a
//! matrix can be inverted, so any pieces that are enough give the rest.
//!
//! Why not a library: those made for thousands of pieces (with transforms in place of a matrix) take a millisecond to
//! restore a single piece, the time of 150 packets; those made for few are slower than this, and old. See
//! `docs/design/0014-erasure-code.md`.
//!
//! # Source
//! J. Blömer et al., "An XOR-based erasure-resilient coding scheme" (1995), with the field of 256 elements.

use bytes::Bytes;

use crate::field;
use crate::limits::LANES_MAX;
use crate::redundancy::Shape;

/// The x of the first further piece. Those of the cut pieces, y, are below.
const FURTHER: u8 = 128;

const _: () = assert!(LANES_MAX <= FURTHER as usize, "x and y are all different");

/// The factor of a cut piece in a further piece.
fn factor(further: usize, cut: usize) -> u8 {
    // Both numbers are below 128, see LANES_MAX.
    field::invert((FURTHER + further as u8) ^ cut as u8)
}

/// A block, and all its pieces on demand.
#[derive(Debug)]
pub(crate) struct Cut {
    shape: Shape,
    piece_bytes: usize,
    /// The block, filled up with zeros to whole pieces.
    padded: Bytes,
}

impl Cut {
    /// Cuts a block. For copies, and where no zeros are needed, nothing is copied.
    pub(crate) fn new(shape: Shape, block: &Bytes) -> Cut {
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
        Cut { shape, piece_bytes, padded }
    }

    /// The piece of a lane. For copies it is the block itself, in the same memory.
    pub(crate) fn piece(&self, lane: usize) -> Bytes {
        if self.shape.is_copies() {
            return self.padded.clone();
        }
        let range = |cut: usize| cut * self.piece_bytes..(cut + 1) * self.piece_bytes;
        match lane.checked_sub(self.shape.needed) {
            None => self.padded.slice(range(lane)),
            Some(further) => {
                let mut piece = vec![0; self.piece_bytes];
                for cut in 0..self.shape.needed {
                    field::add_multiple(
                        &mut piece,
                        self.padded.get(range(cut)).unwrap_or_default(),
                        factor(further, cut),
                    );
                }
                Bytes::from(piece)
            }
        }
    }
}

/// Puts a block together from pieces, of which there is one for each lane that is here, all of the same size. None when
/// they are too few.
pub(crate) fn join(shape: Shape, block_bytes: usize, pieces: &[Option<Bytes>]) -> Option<Bytes> {
    if shape.is_copies() {
        return pieces.iter().flatten().next().cloned();
    }
    let (cut, further) = pieces.split_at_checked(shape.needed)?;
    let restored = restore(cut, further, shape.piece_bytes(block_bytes))?;
    let mut restored = restored.into_iter();
    let mut block = Vec::with_capacity(shape.piece_bytes(block_bytes) * shape.needed);
    for piece in cut {
        match piece {
            Some(piece) => block.extend_from_slice(piece),
            None => block.extend_from_slice(&restored.next()?),
        }
    }
    block.truncate(block_bytes);
    (block.len() == block_bytes).then(|| Bytes::from(block))
}

/// Computes the cut pieces that are missing, in order, from as many further ones. None when those are too few.
fn restore(cut: &[Option<Bytes>], further: &[Option<Bytes>], piece_bytes: usize) -> Option<Vec<Vec<u8>>> {
    let missing: Vec<usize> =
        (0..cut.len()).filter(|&number| cut.get(number).is_some_and(Option::is_none)).collect();
    let here = further.iter().enumerate().filter_map(|(number, piece)| Some((number, piece.as_ref()?)));
    let mut rows = Vec::with_capacity(missing.len());
    for (number, piece) in here.take(missing.len()) {
        // What of this piece does not come from the cut pieces that are here comes from those that are missing.
        let mut rest = piece.to_vec();
        rest.resize(piece_bytes, 0);
        for (place, piece) in
            cut.iter().enumerate().filter_map(|(place, piece)| Some((place, piece.as_ref()?)))
        {
            field::add_multiple(&mut rest, piece, factor(number, place));
        }
        let factors: Vec<u8> = missing.iter().map(|&place| factor(number, place)).collect();
        rows.push((factors, rest));
    }
    (rows.len() == missing.len()).then(|| solve(rows))?
}

/// Solves the equations: each says that the sum of the multiples of unknown pieces with these factors is this piece.
/// None if they do not determine the unknowns, which those of a Cauchy matrix always do.
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
