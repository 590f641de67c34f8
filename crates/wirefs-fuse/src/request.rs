//! From the kernel's bytes to a call: pure functions, so that they can be tested and fuzzed without a kernel.

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
use crate::operands::{Misshapen, Operands};
use wirefs_client::call::{Call, CallId, Caller, TreeNodeId, WriteData};
use wirefs_op::Errno;

/// What was agreed on in INIT and changes the shape of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dialect {
    /// SETXATTR has its longer form.
    pub setxattr_ext: bool,
    /// STATX is answered, from GETATTR; else the kernel is told once that there is none.
    pub statx: bool,
    /// OPENDIR is refused, once, upon which the kernel opens and closes directories by itself.
    pub spares_opendir: bool,
}

/// What each request begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The operation's number.
    pub opcode: u32,
    /// Names the request in its answer.
    pub call: CallId,
    /// The file that it is about.
    pub node: TreeNodeId,
    /// Who asks.
    pub caller: Caller,
}

/// What a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// The first request of a mount.
    Init(Offer),
    /// A call for the file system.
    Call(Call<'a>, Expects),
    /// Many forgets in one; none is answered.
    Forgets(Forgets<'a>),
    /// A signal came for the caller of this call.
    Interrupt(CallId),
    /// The mount goes.
    Destroy,
    /// Needs nothing, not even an answer.
    Ignored,
    /// Answered with this error without asking the file system.
    Refused(Errno),
}

/// A request that is not as the kernel's interface has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The request to answer with an error; `None` when not even that can be read.
    pub call: Option<CallId>,
}

/// Takes a request apart. Names and data stay in `bytes`.
///
/// # Errors
/// When it is too short, says another length than it has, or holds a value that means nothing.
///
/// # Cost
/// No copy, no allocation.
pub fn decode(bytes: &[u8], dialect: Dialect) -> Result<(Header, Body<'_>), Malformed> {
    let (header, operands) = header(bytes, bytes.len()).map_err(|Misshapen| Malformed { call: None })?;
    let Some(operands) = operands else {
        return Err(Malformed { call: Some(header.call) });
    };
    match body(&header, operands, dialect) {
        Ok(body) => Ok((header, body)),
        Err(Misshapen) => Err(Malformed { call: Some(header.call) }),
    }
}

/// Takes a WRITE apart whose data does not lie behind the rest of it, which is `head`.
///
/// # Errors
/// As for [`decode`], and when it is none.
pub fn decode_write<'a>(head: &[u8], data: WriteData<'a>) -> Result<(Header, Body<'a>), Malformed> {
    let (header, operands) =
        header(head, head.len() + data.len()).map_err(|Misshapen| Malformed { call: None })?;
    let decoded = match operands {
        Some(operands) if header.opcode == opcode::WRITE => file::write(header.node, operands, data),
        Some(_) | None => Err(Misshapen),
    };
    match decoded {
        Ok((call, expects)) => Ok((header, Body::Call(call, expects))),
        Err(Misshapen) => Err(Malformed { call: Some(header.call) }),
    }
}

/// Whether a request that begins with these bytes is a WRITE.
pub(crate) fn is_write(head: &[u8]) -> bool {
    header(head, head.len()).is_ok_and(|(header, _)| header.opcode == opcode::WRITE)
}

/// The header, and the operands where the lengths fit each other: the request has `whole_bytes`.
fn header(bytes: &[u8], whole_bytes: usize) -> Result<(Header, Option<Operands<'_>>), Misshapen> {
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
    Ok((Header { opcode, call, node, caller }, operands.filter(|_| whole).map(Operands::new)))
}

fn body<'a>(header: &Header, mut operands: Operands<'a>, dialect: Dialect) -> Result<Body<'a>, Misshapen> {
    match header.opcode {
        opcode::INIT => Offer::decode(operands).map(Body::Init),
        opcode::BATCH_FORGET => Forgets::decode(operands).map(Body::Forgets),
        opcode::INTERRUPT => Ok(Body::Interrupt(CallId(operands.u64()?))),
        opcode::DESTROY => Ok(Body::Destroy),
        opcode::NOTIFY_REPLY => Ok(Body::Ignored),
        opcode::IOCTL => Ok(Body::Refused(Errno::NotTerminal)),
        opcode::STATX if !dialect.statx => Ok(Body::Refused(Errno::NotImplemented)),
        opcode::OPENDIR if dialect.spares_opendir => Ok(Body::Refused(Errno::NotImplemented)),
        _ => match call(header, operands, dialect)? {
            Some((call, expects)) => Ok(Body::Call(call, expects)),
            None => Ok(Body::Refused(Errno::NotImplemented)),
        },
    }
}

/// A call and the shape of its answer.
type Decoded<'a> = Result<(Call<'a>, Expects), Misshapen>;

/// The call, or `None` for an operation that is not known.
fn call<'a>(
    header: &Header,
    operands: Operands<'a>,
    dialect: Dialect,
) -> Result<Option<(Call<'a>, Expects)>, Misshapen> {
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

/// The forgets of one BATCH_FORGET, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgets<'a> {
    pairs: &'a [u8],
}

/// A node and a count, each 8 bytes.
const FORGET_BYTES: usize = 16;

impl<'a> Forgets<'a> {
    fn decode(mut operands: Operands<'a>) -> Result<Forgets<'a>, Misshapen> {
        let count = usize::try_from(operands.u32()?).map_err(|_| Misshapen)?;
        operands.skip(4)?;
        let pairs = operands.bytes(count.checked_mul(FORGET_BYTES).ok_or(Misshapen)?)?;
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
