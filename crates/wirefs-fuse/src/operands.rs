//! A view of a request's bytes that is taken apart from the front. Integers are in the machine's own order: the kernel
//! and this process share it.

/// The request ended before its operands did, or holds a value that means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Misshapen;

/// What is left of a request's operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands<'a>(&'a [u8]);

impl<'a> Operands<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Operands<'a> {
        Operands(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Misshapen> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(Misshapen)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Misshapen> {
        self.array().map(u16::from_ne_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Misshapen> {
        self.array().map(u32::from_ne_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Misshapen> {
        self.array().map(u64::from_ne_bytes)
    }

    /// Passes over padding and fields that nobody needs.
    pub(crate) fn skip(&mut self, bytes: usize) -> Result<(), Misshapen> {
        self.bytes(bytes).map(drop)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Misshapen> {
        let (head, rest) = self.0.split_at_checked(count).ok_or(Misshapen)?;
        self.0 = rest;
        Ok(head)
    }

    /// The first `count` bytes as operands of their own, and what is behind them.
    pub(crate) fn split_at(mut self, count: usize) -> Result<(Operands<'a>, &'a [u8]), Misshapen> {
        let head = self.bytes(count)?;
        Ok((Operands(head), self.0))
    }

    /// Bytes up to a NUL, which is passed over.
    pub(crate) fn name(&mut self) -> Result<&'a [u8], Misshapen> {
        let end = self.0.iter().position(|&byte| byte == 0).ok_or(Misshapen)?;
        let name = self.bytes(end)?;
        self.skip(1)?;
        Ok(name)
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}
