//! A request's bytes, consumed from the front. Integers are in native byte order, as in the kernel.

/// The request is too short, or has an invalid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidOperands;

/// The remaining operands of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands<'a>(&'a [u8]);

impl<'a> Operands<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Operands<'a> {
        Operands(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], InvalidOperands> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(InvalidOperands)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, InvalidOperands> {
        self.array().map(u16::from_ne_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, InvalidOperands> {
        self.array().map(u32::from_ne_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, InvalidOperands> {
        self.array().map(u64::from_ne_bytes)
    }

    /// Skips padding and unused fields.
    pub(crate) fn skip(&mut self, bytes: usize) -> Result<(), InvalidOperands> {
        self.bytes(bytes).map(drop)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], InvalidOperands> {
        let (head, rest) = self.0.split_at_checked(count).ok_or(InvalidOperands)?;
        self.0 = rest;
        Ok(head)
    }

    /// The first `count` bytes as operands, and the bytes after them.
    pub(crate) fn split_at(mut self, count: usize) -> Result<(Operands<'a>, &'a [u8]), InvalidOperands> {
        let head = self.bytes(count)?;
        Ok((Operands(head), self.0))
    }

    /// The bytes before a NUL, which is skipped.
    pub(crate) fn name(&mut self) -> Result<&'a [u8], InvalidOperands> {
        let end = self.0.iter().position(|&byte| byte == 0).ok_or(InvalidOperands)?;
        let name = self.bytes(end)?;
        self.skip(1)?;
        Ok(name)
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}
