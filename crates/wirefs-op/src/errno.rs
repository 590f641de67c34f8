//! The error codes returned to programs: a closed set, sent as Linux's numbers.

#[cfg(test)]
mod tests;

/// The reason why a request failed, in POSIX terms. The wire carries the Linux number and a text for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum Errno {
    /// `EPERM`: operation not permitted.
    NotPermitted = 1,
    /// `ENOENT`: no such file or directory.
    NotFound = 2,
    /// `EINTR`: interrupted system call.
    Interrupted = 4,
    /// `EIO`: input/output error.
    Io = 5,
    /// `ENXIO`: no such device or address.
    NoSuchDevice = 6,
    /// `E2BIG`: argument list too long.
    TooBig = 7,
    /// `EBADF`: bad file descriptor.
    BadDescriptor = 9,
    /// `EAGAIN`: resource temporarily unavailable.
    WouldBlock = 11,
    /// `ENOMEM`: cannot allocate memory.
    NoMemory = 12,
    /// `EACCES`: permission denied.
    AccessDenied = 13,
    /// `EBUSY`: device or resource busy.
    Busy = 16,
    /// `EEXIST`: file exists.
    Exists = 17,
    /// `EXDEV`: invalid cross-device link.
    CrossDevice = 18,
    /// `ENODEV`: no such device.
    NoDevice = 19,
    /// `ENOTDIR`: not a directory.
    NotDirectory = 20,
    /// `EISDIR`: is a directory.
    IsDirectory = 21,
    /// `EINVAL`: invalid argument.
    Invalid = 22,
    /// `ENFILE`: too many open files in system.
    FileTableFull = 23,
    /// `EMFILE`: too many open files.
    TooManyOpen = 24,
    /// `ENOTTY`: inappropriate ioctl for device.
    NotTerminal = 25,
    /// `ETXTBSY`: text file busy.
    TextBusy = 26,
    /// `EFBIG`: file too large.
    FileTooBig = 27,
    /// `ENOSPC`: no space left on device.
    NoSpace = 28,
    /// `ESPIPE`: illegal seek.
    NotSeekable = 29,
    /// `EROFS`: read-only file system.
    ReadOnly = 30,
    /// `EMLINK`: too many links.
    TooManyLinks = 31,
    /// `EPIPE`: broken pipe.
    BrokenPipe = 32,
    /// `ERANGE`: numerical result out of range.
    Range = 34,
    /// `EDEADLK`: resource deadlock avoided.
    Deadlock = 35,
    /// `ENAMETOOLONG`: file name too long.
    NameTooLong = 36,
    /// `ENOLCK`: no locks available.
    NoLocks = 37,
    /// `ENOSYS`: function not implemented.
    NotImplemented = 38,
    /// `ENOTEMPTY`: directory not empty.
    NotEmpty = 39,
    /// `ELOOP`: too many levels of symbolic links.
    Loop = 40,
    /// `ENODATA`: no data available.
    NoData = 61,
    /// `EPROTO`: protocol error.
    Protocol = 71,
    /// `EOVERFLOW`: value too large for defined data type.
    Overflow = 75,
    /// `EOPNOTSUPP`: operation not supported.
    NotSupported = 95,
    /// `ECONNRESET`: connection reset by peer.
    ConnectionReset = 104,
    /// `ETIMEDOUT`: connection timed out.
    TimedOut = 110,
    /// `EHOSTDOWN`: host is down.
    HostDown = 112,
    /// `ESTALE`: stale file handle.
    Stale = 116,
    /// `EDQUOT`: disk quota exceeded.
    Quota = 122,
    /// `ECANCELED`: operation canceled.
    Cancelled = 125,
}

impl Errno {
    /// All errors of the protocol.
    pub const ALL: [Errno; 44] = [
        Errno::NotPermitted,
        Errno::NotFound,
        Errno::Interrupted,
        Errno::Io,
        Errno::NoSuchDevice,
        Errno::TooBig,
        Errno::BadDescriptor,
        Errno::WouldBlock,
        Errno::NoMemory,
        Errno::AccessDenied,
        Errno::Busy,
        Errno::Exists,
        Errno::CrossDevice,
        Errno::NoDevice,
        Errno::NotDirectory,
        Errno::IsDirectory,
        Errno::Invalid,
        Errno::FileTableFull,
        Errno::TooManyOpen,
        Errno::NotTerminal,
        Errno::TextBusy,
        Errno::FileTooBig,
        Errno::NoSpace,
        Errno::NotSeekable,
        Errno::ReadOnly,
        Errno::TooManyLinks,
        Errno::BrokenPipe,
        Errno::Range,
        Errno::Deadlock,
        Errno::NameTooLong,
        Errno::NoLocks,
        Errno::NotImplemented,
        Errno::NotEmpty,
        Errno::Loop,
        Errno::NoData,
        Errno::Protocol,
        Errno::Overflow,
        Errno::NotSupported,
        Errno::ConnectionReset,
        Errno::TimedOut,
        Errno::HostDown,
        Errno::Stale,
        Errno::Quota,
        Errno::Cancelled,
    ];

    /// Returns the Linux number.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// Returns the error with this Linux number; `Io` for a number outside the protocol.
    pub fn from_code(code: u16) -> Errno {
        Errno::ALL.into_iter().find(|errno| errno.code() == code).unwrap_or(Errno::Io)
    }

    /// Returns the text of `strerror`.
    pub fn text(self) -> &'static str {
        match self {
            Errno::NotPermitted => "operation not permitted",
            Errno::NotFound => "no such file or directory",
            Errno::Interrupted => "interrupted system call",
            Errno::Io => "input/output error",
            Errno::NoSuchDevice => "no such device or address",
            Errno::TooBig => "argument list too long",
            Errno::BadDescriptor => "bad file descriptor",
            Errno::WouldBlock => "resource temporarily unavailable",
            Errno::NoMemory => "cannot allocate memory",
            Errno::AccessDenied => "permission denied",
            Errno::Busy => "device or resource busy",
            Errno::Exists => "file exists",
            Errno::CrossDevice => "invalid cross-device link",
            Errno::NoDevice => "no such device",
            Errno::NotDirectory => "not a directory",
            Errno::IsDirectory => "is a directory",
            Errno::Invalid => "invalid argument",
            Errno::FileTableFull => "too many open files in system",
            Errno::TooManyOpen => "too many open files",
            Errno::NotTerminal => "inappropriate ioctl for device",
            Errno::TextBusy => "text file busy",
            Errno::FileTooBig => "file too large",
            Errno::NoSpace => "no space left on device",
            Errno::NotSeekable => "illegal seek",
            Errno::ReadOnly => "read-only file system",
            Errno::TooManyLinks => "too many links",
            Errno::BrokenPipe => "broken pipe",
            Errno::Range => "numerical result out of range",
            Errno::Deadlock => "resource deadlock avoided",
            Errno::NameTooLong => "file name too long",
            Errno::NoLocks => "no locks available",
            Errno::NotImplemented => "function not implemented",
            Errno::NotEmpty => "directory not empty",
            Errno::Loop => "too many levels of symbolic links",
            Errno::NoData => "no data available",
            Errno::Protocol => "protocol error",
            Errno::Overflow => "value too large for defined data type",
            Errno::NotSupported => "operation not supported",
            Errno::ConnectionReset => "connection reset by peer",
            Errno::TimedOut => "connection timed out",
            Errno::HostDown => "host is down",
            Errno::Stale => "stale file handle",
            Errno::Quota => "disk quota exceeded",
            Errno::Cancelled => "operation canceled",
        }
    }
}

impl std::fmt::Display for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Errno {}
