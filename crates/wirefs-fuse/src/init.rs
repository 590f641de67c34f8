//! INIT: the negotiation of features with the kernel. Pure.

#[cfg(test)]
mod tests;

use crate::abi::{self, feature};
use crate::answer::{put_u16, put_u32, put_u64};
use crate::operands::{InvalidOperands, Operands};
use crate::request::Dialect;
use crate::session::SessionOptions;
use wirefs_client::call::CallId;

/// The kernel's offer in INIT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The major version of its interface.
    pub major: u32,
    /// The minor version of its interface.
    pub minor: u32,
    /// Its largest read-ahead in bytes.
    pub readahead_bytes_max: u32,
    /// Its features, both words.
    pub features: u64,
}

impl Offer {
    /// `major[4] minor[4] max_readahead[4] flags[4] flags2[4] unused[44]`; the second word of flags since 7.36.
    pub(crate) fn decode(mut operands: Operands<'_>) -> Result<Offer, InvalidOperands> {
        let (major, minor) = (operands.u32()?, operands.u32()?);
        let readahead_bytes_max = operands.u32()?;
        let mut features = u64::from(operands.u32()?);
        if features & feature::INIT_EXT != 0 {
            features |= u64::from(operands.u32()?) << 32;
        }
        Ok(Offer { major, minor, readahead_bytes_max, features })
    }
}

/// The negotiated parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The minor version in use; the major version is 7.
    pub minor: u32,
    /// The features in use, as the kernel's bits.
    pub features: u64,
    /// The largest read-ahead of the kernel in bytes.
    pub readahead_bytes_max: u32,
    /// The largest write in bytes.
    pub write_bytes_max: u32,
    /// The pages of the largest request, which limits reads.
    pub pages_max: u16,
    /// The limit of background requests.
    pub background_max: u16,
    /// Whether the kernel can invalidate all names at once; if not, each is valid for at most 1 s.
    pub invalidates_all_names: bool,
    statx: bool,
    no_opendir: bool,
}

impl Negotiated {
    pub(crate) fn prunes(&self) -> bool {
        self.minor >= abi::MINOR_PRUNE
    }

    pub(crate) fn maps_uncached(&self) -> bool {
        self.features & feature::DIRECT_IO_ALLOW_MMAP != 0
    }

    pub(crate) fn dialect(&self) -> Dialect {
        Dialect {
            setxattr_ext: self.features & feature::SETXATTR_EXT != 0,
            statx: self.statx,
            no_opendir: self.no_opendir,
        }
    }

    /// `major[4] minor[4] max_readahead[4] flags[4] max_background[2] congestion_threshold[2] max_write[4] time_gran[4]
    /// max_pages[2] map_alignment[2] flags2[4] max_stack_depth[4] request_timeout[2] unused[22]`
    pub(crate) fn encode(&self, call: CallId) -> Vec<u8> {
        let mut out = vec![0; abi::OUT_HEADER_BYTES];
        let start = out.len();
        put_u32(&mut out, abi::MAJOR);
        put_u32(&mut out, self.minor);
        put_u32(&mut out, self.readahead_bytes_max);
        let (low, high) = split_words(self.features);
        put_u32(&mut out, low);
        put_u16(&mut out, self.background_max);
        // Above three quarters of the limit, the kernel considers the mount congested and stops read-ahead.
        put_u16(&mut out, self.background_max - self.background_max / 4);
        put_u32(&mut out, self.write_bytes_max);
        put_u32(&mut out, 1);
        put_u16(&mut out, self.pages_max);
        put_u16(&mut out, 0);
        put_u32(&mut out, high);
        put_u32(&mut out, 0);
        put_u64(&mut out, 0);
        out.resize(start + abi::INIT_IN_BYTES, 0);
        crate::answer::put_header(&mut out, 0, call.0, 0);
        out
    }
}

fn split_words(features: u64) -> (u32, u32) {
    let low = u32::try_from(features & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    let high = u32::try_from(features >> 32).unwrap_or(u32::MAX);
    (low, high)
}

/// The result of a negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Negotiated(Negotiated),
    /// The kernel has a newer major version: it gets ours and sends another offer.
    OfferAgain,
    /// The kernel is too old.
    TooOld,
}

/// Features that are always requested.
///
/// NO_EXPORT_SUPPORT: a file handle contains a node id, which is invalid after the kernel has evicted the inode. So
/// the kernel must not give out handles.
///
/// Not requested: WRITEBACK_CACHE (the kernel would own size and times of files that other clients change),
/// NO_OPEN_SUPPORT (opens tell the server which files are in use).
const ALWAYS: u64 = feature::ASYNC_READ
    | feature::POSIX_LOCKS
    | feature::ATOMIC_O_TRUNC
    | feature::BIG_WRITES
    | feature::DONT_MASK
    | feature::FLOCK_LOCKS
    | feature::DO_READDIRPLUS
    | feature::ASYNC_DIO
    | feature::PARALLEL_DIROPS
    | feature::ABORT_ERROR
    | feature::MAX_PAGES
    | feature::HANDLE_KILLPRIV_V2
    | feature::SETXATTR_EXT
    | feature::INIT_EXT
    | feature::DIRECT_IO_ALLOW_MMAP
    | feature::NO_EXPORT_SUPPORT;

/// Pages of a request without MAX_PAGES.
const PAGES_DEFAULT: u32 = 32;

/// Selects the features that the kernel offers and the options request.
pub(crate) fn negotiate(offer: &Offer, options: &SessionOptions, page_bytes: u32) -> Outcome {
    if offer.major > abi::MAJOR {
        return Outcome::OfferAgain;
    }
    if offer.major < abi::MAJOR || offer.minor < abi::MINOR_MIN {
        return Outcome::TooOld;
    }
    let mut wanted = ALWAYS;
    wanted |= if options.auto_inval_data { feature::AUTO_INVAL_DATA } else { feature::EXPLICIT_INVAL_DATA };
    if options.readdirplus_auto {
        wanted |= feature::READDIRPLUS_AUTO;
    }
    if options.keeps_links {
        wanted |= feature::CACHE_SYMLINKS;
    }
    if options.no_opendir {
        wanted |= feature::NO_OPENDIR_SUPPORT;
    }
    if options.posix_acl {
        wanted |= feature::POSIX_ACL;
    }
    let features = offer.features & wanted;
    let page_bytes = page_bytes.max(1);
    let pages_max = match features & feature::MAX_PAGES {
        0 => PAGES_DEFAULT,
        _ => options.write_bytes_max().div_ceil(page_bytes),
    };
    Outcome::Negotiated(Negotiated {
        minor: offer.minor.min(abi::MINOR),
        features,
        readahead_bytes_max: offer.readahead_bytes_max,
        write_bytes_max: options.write_bytes_max().min(pages_max.saturating_mul(page_bytes)),
        pages_max: u16::try_from(pages_max).unwrap_or(u16::MAX),
        background_max: options.background_max.max(1),
        invalidates_all_names: options.invalidates_all_names && offer.minor >= abi::MINOR_INC_EPOCH,
        statx: options.statx,
        no_opendir: features & feature::NO_OPENDIR_SUPPORT != 0,
    })
}

/// Replies with our version to a newer kernel, which then sends another offer.
pub(crate) fn encode_offer_again(call: CallId) -> Vec<u8> {
    let mut out = vec![0; abi::OUT_HEADER_BYTES];
    put_u32(&mut out, abi::MAJOR);
    put_u32(&mut out, abi::MINOR);
    crate::answer::put_header(&mut out, 0, call.0, 0);
    out
}
