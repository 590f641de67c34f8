//! The form of a record: a head with length and checksum, and contents.

use crate::checksum::Checksum;
use bytes::BufMut;
use std::marker::PhantomData;

/// The length of the length, in bytes.
const LENGTH_BYTES: usize = 4;

/// The form of all records of one kind of file. The sum `S` covers a seed, the length and the contents.
///
/// ```text
///  mark  length[4]  sum  contents          length is little endian
/// ```
#[derive(Debug)]
pub struct Form<S> {
    mark: &'static [u8],
    length_max: usize,
    uncounted_bytes: usize,
    is_length_summed: bool,
    sum: PhantomData<fn() -> S>,
}

/// The result of reading a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome<'a> {
    /// A whole record.
    Record {
        /// The checksum.
        sum: &'a [u8],
        /// The contents.
        contents: &'a [u8],
        /// The bytes after the record.
        rest: &'a [u8],
    },
    /// Too few bytes for a record: the end, or a record whose writer died.
    Incomplete,
    /// No record of this form, or one with wrong bytes.
    Damaged,
}

impl<S: Checksum> Form<S> {
    /// Returns a form without a mark. A length above `length_max` counts as damage.
    pub const fn new(length_max: usize) -> Form<S> {
        let sum = PhantomData;
        Form { mark: &[], length_max, uncounted_bytes: 0, is_length_summed: true, sum }
    }

    /// The same with a mark, by which a record is found after damage. The length does not count the first bytes of the contents.
    pub const fn marked(self, mark: &'static [u8], uncounted_bytes: usize) -> Form<S> {
        Form { mark, uncounted_bytes, ..self }
    }

    /// The same with a sum that does not cover the length.
    pub const fn without_length_in_sum(self) -> Form<S> {
        Form { is_length_summed: false, ..self }
    }

    /// The length of a record before its contents, in bytes.
    pub const fn head_bytes(&self) -> usize {
        self.mark.len() + LENGTH_BYTES + S::BYTES
    }

    /// Writes the head of a record; the caller writes the contents after it. `seed` is a checksum that has begun with bytes that
    /// the reader knows.
    pub fn put_head<'a>(
        &self,
        to: &mut impl BufMut,
        seed: S,
        contents: impl Iterator<Item = &'a [u8]> + Clone,
    ) {
        let bytes = contents.clone().map(<[u8]>::len).sum::<usize>();
        let length = (bytes.saturating_sub(self.uncounted_bytes) as u32).to_le_bytes();
        to.put_slice(self.mark);
        to.put_slice(&length);
        to.put_slice(self.sum(seed, length, contents).as_ref());
    }

    /// Appends a record whose sum has no seed.
    pub fn append(&self, log: &mut Vec<u8>, contents: &[&[u8]]) {
        self.put_head(log, S::default(), contents.iter().copied());
        contents.iter().for_each(|part| log.extend_from_slice(part));
    }

    /// Reads the record at the beginning of these bytes.
    pub fn read<'a>(&self, log: &'a [u8], seed: S) -> ReadOutcome<'a> {
        let Some((mark, tail)) = log.split_at_checked(self.mark.len()) else {
            return ReadOutcome::Incomplete;
        };
        if mark != self.mark {
            return ReadOutcome::Damaged;
        }
        let Some((length, tail)) = tail.split_first_chunk() else { return ReadOutcome::Incomplete };
        let counted = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if counted > self.length_max {
            return ReadOutcome::Damaged;
        }
        let Some((sum, tail)) = tail.split_at_checked(S::BYTES) else { return ReadOutcome::Incomplete };
        let bytes = self.uncounted_bytes + counted;
        let Some((contents, rest)) = tail.split_at_checked(bytes) else { return ReadOutcome::Incomplete };
        let is_right = self.sum(seed, *length, [contents].into_iter()).as_ref() == sum;
        if is_right { ReadOutcome::Record { sum, contents, rest } } else { ReadOutcome::Damaged }
    }

    fn sum<'a>(
        &self,
        mut sum: S,
        length: [u8; LENGTH_BYTES],
        contents: impl Iterator<Item = &'a [u8]>,
    ) -> S::Sum {
        if self.is_length_summed {
            sum.add(&length);
        }
        contents.for_each(|part| sum.add(part));
        sum.value()
    }
}

#[cfg(test)]
mod tests;
