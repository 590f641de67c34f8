//! Decodes the kernel's requests: pure functions, testable and fuzzable without a kernel.

mod attribute;
mod directory;
mod file;
mod lock;
mod namespace;
#[cfg(test)]
mod tests;

use crate::abi::{self, opcode};
use crate::answer::Expects;
use crate::init::Offer;
use crate::operands::{InvalidOperands, Operands};
use wirefs_client::call::{Call, CallId, Caller, TreeNodeId, WriteData};
use wirefs_op::Errno;

/// Negotiated features that change the form of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dialect {
    /// SETXATTR has its longer form.
    pub setxattr_ext: bool,
    /// STATX is answered from GETATTR; if not, the kernel is told once that it is unsupported.
    pub statx: bool,
    /// OPENDIR is refused once, and then the kernel opens and closes directories by itself.
    pub no_opendir: bool,
}

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// The operation's number.
    pub opcode: u32,
    /// Identifies the request in its answer.
    pub call: CallId,
    /// The node of the request.
    pub node: TreeNodeId,
    /// The calling process.
    pub caller: Caller,
}

/// The type of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// The first request of a mount.
    Init(Offer),
    /// A call for the file system.
    Call(Call<'a>, Expects),
    /// A batch of forgets without answers.
    Forgets(Forgets<'a>),
    /// A signal for the caller of this call.
    Interrupt(CallId),
    /// The end of the mount.
    Destroy,
    /// A request without an effect and without an answer.
    Ignored,
    /// A request that fails with this error without a call.
    Refused(Errno),
}

/// A request that violates the kernel's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedRequest {
    /// The request to answer with an error; `None` if not even its header is valid.
    pub call: Option<CallId>,
}

/// Decodes a request. Names and data are borrowed from `bytes`.
///
/// # Errors
/// The request is too short, its length field is wrong, or it has an invalid value.
pub fn decode(bytes: &[u8], dialect: Dialect) -> Result<(RequestHeader, Body<'_>), MalformedRequest> {
    let (header, operands) =
        header(bytes, bytes.len()).map_err(|InvalidOperands| MalformedRequest { call: None })?;
    let Some(operands) = operands else {
        return Err(MalformedRequest { call: Some(header.call) });
    };
    match body(&header, operands, dialect) {
        Ok(body) => Ok((header, body)),
        Err(InvalidOperands) => Err(MalformedRequest { call: Some(header.call) }),
    }
}

/// Decodes a WRITE whose data is separate from its `head`.
///
/// # Errors
/// As for [`decode`], and if it is not a WRITE.
pub fn decode_write<'a>(
    head: &[u8],
    data: WriteData<'a>,
) -> Result<(RequestHeader, Body<'a>), MalformedRequest> {
    let (header, operands) =
        header(head, head.len() + data.len()).map_err(|InvalidOperands| MalformedRequest { call: None })?;
    let decoded = match operands {
        Some(operands) if header.opcode == opcode::WRITE => file::write(header.node, operands, data),
        Some(_) | None => Err(InvalidOperands),
    };
    match decoded {
        Ok((call, expects)) => Ok((header, Body::Call(call, expects))),
        Err(InvalidOperands) => Err(MalformedRequest { call: Some(header.call) }),
    }
}

/// Whether a request that begins with these bytes is a WRITE.
pub(crate) fn is_write(head: &[u8]) -> bool {
    header(head, head.len()).is_ok_and(|(header, _)| header.opcode == opcode::WRITE)
}

/// Decodes the header, with the operands if the lengths are consistent: the request has `whole_bytes`.
fn header(
    bytes: &[u8],
    whole_bytes: usize,
) -> Result<(RequestHeader, Option<Operands<'_>>), InvalidOperands> {
    let mut fields = Operands::new(bytes);
    let length = fields.u32()?;
    let opcode = fields.u32()?;
    let call = CallId(fields.u64()?);
    let node = TreeNodeId(fields.u64()?);
    let caller = Caller { uid: fields.u32()?, gid: fields.u32()?, pid: fields.u32()? };
    let extension_bytes = usize::from(fields.u16()?) * 8;
    fields.skip(2)?;
    let operands = fields.rest();
    let whole = usize::try_from(length).is_ok_and(|length| length == whole_bytes);
    let operands = operands.len().checked_sub(extension_bytes).and_then(|end| operands.get(..end));
    Ok((RequestHeader { opcode, call, node, caller }, operands.filter(|_| whole).map(Operands::new)))
}

fn body<'a>(
    header: &RequestHeader,
    mut operands: Operands<'a>,
    dialect: Dialect,
) -> Result<Body<'a>, InvalidOperands> {
    match header.opcode {
        opcode::INIT => Offer::decode(operands).map(Body::Init),
        opcode::BATCH_FORGET => Forgets::decode(operands).map(Body::Forgets),
        opcode::INTERRUPT => Ok(Body::Interrupt(CallId(operands.u64()?))),
        opcode::DESTROY => Ok(Body::Destroy),
        opcode::NOTIFY_REPLY => Ok(Body::Ignored),
        opcode::IOCTL => Ok(Body::Refused(Errno::NotTerminal)),
        opcode::STATX if !dialect.statx => Ok(Body::Refused(Errno::NotImplemented)),
        opcode::OPENDIR if dialect.no_opendir => Ok(Body::Refused(Errno::NotImplemented)),
        _ => match call(header, operands, dialect)? {
            Some((call, expects)) => Ok(Body::Call(call, expects)),
            None => Ok(Body::Refused(Errno::NotImplemented)),
        },
    }
}

/// A call and the form of its answer.
type Decoded<'a> = Result<(Call<'a>, Expects), InvalidOperands>;

/// Decodes the call; `None` for an unknown operation.
fn call<'a>(
    header: &RequestHeader,
    operands: Operands<'a>,
    dialect: Dialect,
) -> Result<Option<(Call<'a>, Expects)>, InvalidOperands> {
    let node = header.node;
    let decoded = match header.opcode {
        opcode::LOOKUP => namespace::lookup(node, operands),
        opcode::FORGET => namespace::forget(node, operands),
        opcode::MKNOD => namespace::mknod(node, operands),
        opcode::MKDIR => namespace::mkdir(node, operands),
        opcode::SYMLINK => namespace::symlink(node, operands),
        opcode::READLINK => namespace::readlink(node),
        opcode::UNLINK => namespace::unlink(node, operands),
        opcode::RMDIR => namespace::rmdir(node, operands),
        opcode::RENAME => namespace::rename(node, operands),
        opcode::RENAME2 => namespace::rename2(node, operands),
        opcode::LINK => namespace::link(node, operands),

        opcode::GETATTR => attribute::getattr(node, operands, Expects::Attr),
        opcode::STATX => attribute::getattr(node, operands, Expects::Statx),
        opcode::SETATTR => attribute::setattr(node, operands),
        opcode::ACCESS => attribute::access(node, operands),
        opcode::SETXATTR => attribute::setxattr(node, operands, dialect),
        opcode::GETXATTR => attribute::getxattr(node, operands),
        opcode::LISTXATTR => attribute::listxattr(node, operands),
        opcode::REMOVEXATTR => attribute::removexattr(node, operands),
        opcode::STATFS => Ok((Call::Statfs { node }, Expects::FsStat)),
        opcode::SYNCFS => Ok((Call::Syncfs { node }, Expects::Done)),

        opcode::OPEN => file::open(node, operands),
        opcode::CREATE => file::create(node, operands),
        opcode::TMPFILE => file::tmpfile(node, operands),
        opcode::READ => file::read(node, operands),
        opcode::WRITE => {
            let (fields, data) = operands.split_at(abi::WRITE_IN_BYTES)?;
            file::write(node, fields, WriteData::Lent(data))
        }
        opcode::FLUSH => file::flush(node, operands),
        opcode::RELEASE => file::release(node, operands),
        opcode::FSYNC => file::fsync(node, operands),
        opcode::FALLOCATE => file::fallocate(node, operands),
        opcode::LSEEK => file::lseek(node, operands),
        opcode::COPY_FILE_RANGE => file::copy_range(node, operands, Expects::Count),
        opcode::COPY_FILE_RANGE_64 => file::copy_range(node, operands, Expects::Count64),

        opcode::OPENDIR => Ok((Call::Opendir { node }, Expects::OpenedDirectory)),
        opcode::READDIR => directory::readdir(node, operands, false),
        opcode::READDIRPLUS => directory::readdir(node, operands, true),
        opcode::RELEASEDIR => directory::releasedir(node, operands),
        opcode::FSYNCDIR => directory::fsyncdir(node, operands),

        opcode::GETLK => lock::getlk(node, operands),
        opcode::SETLK => lock::setlk(node, operands, false),
        opcode::SETLKW => lock::setlk(node, operands, true),
        _ => return Ok(None),
    };
    decoded.map(Some)
}

/// The forgets of one BATCH_FORGET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgets<'a> {
    pairs: &'a [u8],
}

/// A node and a count, each 8 bytes.
const FORGET_BYTES: usize = 16;

impl<'a> Forgets<'a> {
    fn decode(mut operands: Operands<'a>) -> Result<Forgets<'a>, InvalidOperands> {
        let count = usize::try_from(operands.u32()?).map_err(|_| InvalidOperands)?;
        operands.skip(4)?;
        let pairs = operands.bytes(count.checked_mul(FORGET_BYTES).ok_or(InvalidOperands)?)?;
        Ok(Forgets { pairs })
    }
}

impl<'a> Iterator for Forgets<'a> {
    type Item = Call<'a>;

    fn next(&mut self) -> Option<Call<'a>> {
        let mut operands = Operands::new(self.pairs);
        let node = TreeNodeId(operands.u64().ok()?);
        let count = operands.u64().ok()?;
        self.pairs = operands.rest();
        Some(Call::Forget { node, count })
    }
}
