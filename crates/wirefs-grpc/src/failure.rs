//! Errors of the file system as status codes.

use tonic::metadata::MetadataValue;
use tonic::{Code, Status};
use wirefs_op::Errno;

/// The trailing metadata with Linux's number of the error.
pub(crate) const ERRNO: &str = "wirefs-errno";

/// Returns the status of an error: its code, its text, and its number in the metadata.
pub(crate) fn status(errno: Errno) -> Status {
    let mut status = Status::new(code(errno), errno.text());
    status.metadata_mut().insert(ERRNO, MetadataValue::from(errno.code()));
    status
}

/// The code that says the most about an error without its number.
fn code(errno: Errno) -> Code {
    match errno {
        Errno::NotFound => Code::NotFound,
        Errno::Exists => Code::AlreadyExists,
        Errno::NotPermitted | Errno::AccessDenied | Errno::ReadOnly => Code::PermissionDenied,
        Errno::Invalid | Errno::NameTooLong | Errno::TooBig | Errno::Range | Errno::Overflow => {
            Code::InvalidArgument
        }
        Errno::NotDirectory
        | Errno::IsDirectory
        | Errno::NotEmpty
        | Errno::Loop
        | Errno::CrossDevice
        | Errno::TextBusy
        | Errno::BadDescriptor
        | Errno::NotSeekable
        | Errno::NotTerminal
        | Errno::NoDevice
        | Errno::NoSuchDevice
        | Errno::TooManyLinks => Code::FailedPrecondition,
        Errno::NoSpace
        | Errno::Quota
        | Errno::NoMemory
        | Errno::FileTooBig
        | Errno::FileTableFull
        | Errno::TooManyOpen
        | Errno::NoLocks => Code::ResourceExhausted,
        Errno::NotSupported | Errno::NotImplemented => Code::Unimplemented,
        Errno::TimedOut => Code::DeadlineExceeded,
        Errno::HostDown | Errno::ConnectionReset | Errno::BrokenPipe => Code::Unavailable,
        Errno::Stale | Errno::WouldBlock | Errno::Busy | Errno::Deadlock => Code::Aborted,
        Errno::Interrupted | Errno::Cancelled => Code::Cancelled,
        Errno::NoData => Code::NotFound,
        Errno::Io | Errno::Protocol => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_its_number_and_no_success() {
        for errno in Errno::ALL {
            let status = status(errno);
            assert_ne!(status.code(), Code::Ok, "{errno}");
            assert_eq!(status.metadata().get(ERRNO).unwrap().to_str().unwrap(), errno.code().to_string());
        }
    }
}
