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

/// Why a request of ours failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The gate refused it.
    Errno(Errno),
    /// The gate is not reached, and may have carried it out or not.
    Lost,
}

/// Returns what a status means: the number in its metadata, else the meaning of its code.
pub(crate) fn refusal(status: &Status) -> Refusal {
    let number = status.metadata().get(ERRNO).and_then(|number| number.to_str().ok()?.parse().ok());
    if let Some(number) = number {
        return Refusal::Errno(Errno::from_code(number));
    }
    Refusal::Errno(match status.code() {
        Code::NotFound => Errno::NotFound,
        Code::AlreadyExists => Errno::Exists,
        Code::PermissionDenied | Code::Unauthenticated => Errno::AccessDenied,
        Code::InvalidArgument | Code::OutOfRange => Errno::Invalid,
        Code::ResourceExhausted => Errno::NoSpace,
        Code::Unimplemented => Errno::NotSupported,
        Code::DeadlineExceeded => Errno::TimedOut,
        Code::Aborted => Errno::WouldBlock,
        // Without a number these say that the connection has ended.
        Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal => return Refusal::Lost,
        Code::FailedPrecondition | Code::DataLoss | Code::Ok => Errno::Io,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of docs/GATE.md, as other clients may rely on it.
    #[test]
    fn each_error_has_the_code_that_the_documentation_names() {
        let text = include_str!("../../../docs/GATE.md");
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `")).filter_map(|row| {
            let (code, names) = row.split_once("` | ")?;
            code.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_').then_some((code, names))
        });
        let mut found = Vec::new();
        for (code_name, names) in rows {
            for name in names.trim_end_matches(" |").split(", ") {
                let errno = Errno::ALL.into_iter().find(|errno| named(*errno) == name);
                let errno = errno.unwrap_or_else(|| panic!("no such error: {name}"));
                let words = format!("{:?}", code(errno));
                assert_eq!(code_name.replace('_', ""), words.to_uppercase(), "{name}");
                found.push(errno);
            }
        }
        found.sort();
        let mut all = Errno::ALL.to_vec();
        all.sort();
        assert_eq!(found, all, "each error stands in the table once");
    }

    /// The name in `errno.h`, as the doc comment of the error has it.
    fn named(errno: Errno) -> String {
        let source = include_str!("../../wirefs-op/src/errno.rs");
        let variant = format!("    {errno:?} = {},", errno.code());
        let (above, _) = source.split_once(&variant).unwrap();
        above.rsplit('`').nth(1).unwrap().to_owned()
    }

    #[test]
    fn a_status_is_the_error_that_it_was_made_of() {
        for errno in Errno::ALL {
            assert_eq!(refusal(&status(errno)), Refusal::Errno(errno));
        }
    }

    #[test]
    fn a_status_without_a_number_means_what_its_code_says() {
        let bare = |code| refusal(&Status::new(code, "of another server"));
        assert_eq!(bare(Code::NotFound), Refusal::Errno(Errno::NotFound));
        assert_eq!(bare(Code::DeadlineExceeded), Refusal::Errno(Errno::TimedOut));
        assert_eq!(bare(Code::Unauthenticated), Refusal::Errno(Errno::AccessDenied));
        assert_eq!(bare(Code::Unavailable), Refusal::Lost);
        // Each code has a meaning: none of them is a success.
        for number in 1..=16 {
            let refused = bare(Code::from_i32(number));
            assert!(refused != Refusal::Errno(Errno::Io) || [9, 15].contains(&number), "{number}");
        }
    }

    #[test]
    fn each_error_has_its_number_and_no_success() {
        for errno in Errno::ALL {
            let status = status(errno);
            assert_ne!(status.code(), Code::Ok, "{errno}");
            assert_eq!(status.metadata().get(ERRNO).unwrap().to_str().unwrap(), errno.code().to_string());
        }
    }
}
