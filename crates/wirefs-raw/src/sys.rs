//! System calls without a safe wrapper: batched reception and transmission, packet filters, socket memory,
//! receive rings.

#![expect(
    unsafe_code,
    reason = "system calls without a safe wrapper in rustix; each block states why it is sound"
)]

use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::limits::BATCH_PACKETS_MAX;

/// Room for one control message with a `timespec`, in aligned 8-byte words: 2 for the header, 2 for the time.
const CONTROL_WORDS: usize = 4;

/// A received datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceivedDatagram {
    /// Its size in the slot in bytes.
    pub(crate) bytes: usize,
    /// Whether the slot was too small for it.
    pub(crate) is_cut: bool,
    /// Its arrival time by [`wall_clock`]; `None` without timestamps.
    pub(crate) arrived: Option<Duration>,
}

/// Receives datagrams without blocking, each into its own slot: the first at `offset`, the next `slot_bytes`
/// further. Returns their number, at least one.
///
/// # Errors
/// The system's error, or a pending error of the socket; `WouldBlock` if no datagram waits.
pub(crate) fn receive(
    fd: BorrowedFd<'_>,
    arena: &mut [u8],
    offset: usize,
    slot_bytes: usize,
    received: &mut [ReceivedDatagram; BATCH_PACKETS_MAX],
    max: usize,
) -> io::Result<usize> {
    let mut slices = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH_PACKETS_MAX];
    let mut controls = [[0u64; CONTROL_WORDS]; BATCH_PACKETS_MAX];
    // SAFETY: `mmsghdr` is plain data for which all zeros is a value: null pointers with zero lengths.
    let mut messages: [libc::mmsghdr; BATCH_PACKETS_MAX] = unsafe { MaybeUninit::zeroed().assume_init() };
    let slots = arena.chunks_exact_mut(slot_bytes).filter_map(|slot| slot.get_mut(offset..));
    let mut count = 0;
    for (((message, slice), control), slot) in
        messages.iter_mut().zip(&mut slices).zip(&mut controls).zip(slots.take(max))
    {
        *slice = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
        message.msg_hdr.msg_iov = slice;
        message.msg_hdr.msg_iovlen = 1;
        message.msg_hdr.msg_control = control.as_mut_ptr().cast();
        message.msg_hdr.msg_controllen = size_of_val(control) as _;
        count += 1;
    }
    // SAFETY: the first `count` headers point to slices and controls that live through the call; each slice is a
    // slot of `arena`, which is borrowed mutably, and the slots do not overlap. The kernel writes within the lengths
    // given and keeps no pointer. No time limit is given.
    let result = unsafe {
        libc::recvmmsg(
            fd.as_raw_fd(),
            messages.as_mut_ptr(),
            count,
            libc::MSG_DONTWAIT as _,
            std::ptr::null_mut(),
        )
    };
    let filled = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
    for (to, message) in received.iter_mut().zip(&messages).take(filled) {
        *to = ReceivedDatagram {
            bytes: message.msg_len as usize,
            is_cut: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            arrived: arrival(&message.msg_hdr),
        };
    }
    Ok(filled)
}

/// Returns the arrival time in the control messages of a datagram.
fn arrival(header: &libc::msghdr) -> Option<Duration> {
    // SAFETY: the kernel filled the control buffer of this header and set its length; `CMSG_FIRSTHDR` gives null or a
    // pointer to a whole `cmsghdr` within it, which is aligned since the buffer consists of 8-byte words.
    let first = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
    if (first.cmsg_level, first.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
        return None;
    }
    // SAFETY: a message of this type carries one `timespec`; the buffer has room for it, and it is read unaligned.
    let time = unsafe { libc::CMSG_DATA(first).cast::<libc::timespec>().read_unaligned() };
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

/// Sends these ranges of `arena` as one datagram each to the connected peer, without blocking. Returns how
/// many were taken, at least one.
///
/// # Errors
/// The system's error for the first datagram, or a pending error of the socket: then none was taken.
pub(crate) fn send(fd: BorrowedFd<'_>, arena: &[u8], ranges: &[Range<usize>]) -> io::Result<usize> {
    let mut slices = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH_PACKETS_MAX];
    // SAFETY: as in `receive`.
    let mut messages: [libc::mmsghdr; BATCH_PACKETS_MAX] = unsafe { MaybeUninit::zeroed().assume_init() };
    let datagrams = ranges.iter().filter_map(|range| arena.get(range.clone()));
    let mut count = 0;
    for ((message, slice), datagram) in messages.iter_mut().zip(&mut slices).zip(datagrams) {
        *slice = libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() };
        message.msg_hdr.msg_iov = slice;
        message.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: the first `count` headers point to slices that live through the call, and these to parts of `arena`, which
    // the kernel only reads; it writes the counts into the headers and keeps no pointer.
    let result =
        unsafe { libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count, libc::MSG_DONTWAIT as _) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Takes one entry off the socket's queue of ICMP errors. Returns `false` if it is empty.
///
/// # Errors
/// The system's error.
pub(crate) fn take_queued_error(fd: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: as in `receive`; a header without slice and control asks for nothing to be written.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the header lives through the call and gives the kernel no place to write to but its own fields.
    let result =
        unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
    match usize::try_from(result).map_err(|_| io::Error::last_os_error()) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sets a socket option to a value without pointers.
///
/// # Errors
/// The system's error.
pub(crate) fn set_option<T: Plain>(
    fd: impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the value is plain data that lives through the call, its true length is given, and the kernel reads only.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Values of socket options: integers without pointers, for which all bytes are valid.
pub(crate) trait Plain: Copy {}
impl Plain for libc::c_int {}
impl Plain for u32 {}
impl Plain for [u32; 8] {}
impl Plain for RingRequest {}

/// One step of a packet filter: code, jump if true, jump if false, operand.
pub(crate) type FilterStep = (u16, u8, u8, u32);
/// Maximum number of filter steps.
const FILTER_STEPS_MAX: usize = 8;

/// Attaches a packet filter (classic BPF), which the kernel verifies.
///
/// # Errors
/// The system's error; `InvalidInput` for a filter of more than 8 steps.
pub(crate) fn attach_filter(fd: BorrowedFd<'_>, steps: &[FilterStep]) -> io::Result<()> {
    let mut program = [libc::sock_filter { code: 0, jt: 0, jf: 0, k: 0 }; FILTER_STEPS_MAX];
    if steps.len() > program.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, &(code, jt, jf, k)) in program.iter_mut().zip(steps) {
        *to = libc::sock_filter { code, jt, jf, k };
    }
    let described = libc::sock_fprog { len: steps.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the description and the program it points to live through the call; the kernel copies `len` steps, which
    // are within the array, and writes nothing.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const described).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Number of words of `SO_MEMINFO` up to the count of dropped packets.
pub(crate) const MEMORY_WORDS: usize = libc::SK_MEMINFO_DROPS as usize + 1;

/// Returns the kernel's accounting of a socket's memory: bytes of received packets first, their limit second,
/// dropped packets last.
///
/// # Errors
/// The system's error.
pub(crate) fn memory(fd: BorrowedFd<'_>) -> io::Result<[u32; MEMORY_WORDS]> {
    let mut words = [0u32; MEMORY_WORDS];
    let mut bytes = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes, the size of the array, whose elements take any value.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    if result == 0 { Ok(words) } else { Err(io::Error::last_os_error()) }
}

/// Returns the wall clock, which the kernel uses for timestamps, since 1970.
pub(crate) fn wall_clock() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Size of an Ethernet hardware address in bytes.
pub(crate) const HARDWARE_BYTES: usize = 6;

/// Returns an empty link-layer address.
fn no_link_address() -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::c_ushort,
        sll_protocol: 0,
        sll_ifindex: 0,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

/// Binds a packet socket to one interface and one frame type. Before that it receives nothing.
///
/// # Errors
/// The system's error.
pub(crate) fn bind_link(fd: BorrowedFd<'_>, interface: u32, ether_type: u16) -> io::Result<()> {
    let index = i32::try_from(interface).map_err(|_| io::ErrorKind::InvalidInput)?;
    let address =
        libc::sockaddr_ll { sll_protocol: ether_type.to_be(), sll_ifindex: index, ..no_link_address() };
    // SAFETY: the address lives through the call, its true size is given, and the kernel reads only.
    let result = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the hardware address of the interface of a packet socket; `None` if it is not Ethernet.
///
/// # Errors
/// The system's error.
pub(crate) fn hardware_address(fd: BorrowedFd<'_>) -> io::Result<Option<[u8; HARDWARE_BYTES]>> {
    let mut address = no_link_address();
    let mut bytes = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes, the size of the address, whose fields take any value.
    let result = unsafe { libc::getsockname(fd.as_raw_fd(), (&raw mut address).cast(), &raw mut bytes) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let is_ethernet =
        address.sll_hatype == libc::ARPHRD_ETHER && usize::from(address.sll_halen) == HARDWARE_BYTES;
    Ok(address.sll_addr.first_chunk().copied().filter(|_| is_ethernet))
}

/// Returns the MTU of an interface in bytes.
///
/// # Errors
/// The system's error; `InvalidInput` for an invalid interface name.
pub(crate) fn interface_mtu(fd: BorrowedFd<'_>, name: &str) -> io::Result<usize> {
    // SAFETY: `ifreq` is plain data for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    // The last byte stays zero.
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    request.ifr_name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as libc::c_char);
    // SAFETY: the request lives through the call; for this code the kernel reads its name and writes its `int`.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel wrote this field, and any bytes are a value of it.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    usize::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The request for a receive ring: the kernel's `tpacket_req`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct RingRequest {
    /// Size of a block in bytes: whole pages.
    pub(crate) block_bytes: u32,
    pub(crate) blocks: u32,
    /// Size of a slot in bytes, header included: a multiple of 16.
    pub(crate) slot_bytes: u32,
    pub(crate) slots: u32,
}

/// `TPACKET_V2`.
const RING_VERSION: libc::c_int = 1;
/// The slot belongs to the program; else to the kernel.
const SLOT_IS_OURS: u32 = 1;
/// Offsets in a slot: the frame's size on the wire, its size here (32 bits each), and its offset (16 bits).
const SLOT_LENGTH_AT: usize = 4;
const SLOT_BYTES_AT: usize = 8;
const SLOT_FRAME_AT: usize = 12;
/// Size of the kernel's header in a slot in bytes, Ethernet header included.
pub(crate) const SLOT_HEADER_BYTES: usize = 80;

/// The memory of a receive ring, shared with the kernel. The first word of a slot tells to which side it
/// belongs.
#[derive(Debug)]
pub(crate) struct RingMemory {
    start: std::ptr::NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process and not to a thread; all access goes through `&self` to one atomic word of a
// slot, or through `&mut self`.
unsafe impl Send for RingMemory {}
// SAFETY: as above: what `&self` allows is an atomic load.
unsafe impl Sync for RingMemory {}

/// Makes a bound packet socket receive into a ring, and maps the ring.
///
/// # Errors
/// The system's error, for example for lack of memory.
pub(crate) fn receive_ring(fd: BorrowedFd<'_>, request: &RingRequest) -> io::Result<RingMemory> {
    set_option(fd, libc::SOL_PACKET, libc::PACKET_VERSION, &RING_VERSION)?;
    set_option(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, request)?;
    let bytes = request.block_bytes as usize * request.blocks as usize;
    // SAFETY: a new mapping at an address that the kernel chooses; it replaces none.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            fd.as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let start = std::ptr::NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
    Ok(RingMemory { start, bytes })
}

impl RingMemory {
    fn status(&self, at: usize) -> Option<&AtomicU32> {
        if !at.is_multiple_of(size_of::<u32>()) || at + SLOT_HEADER_BYTES > self.bytes {
            return None;
        }
        // SAFETY: the word lies within the mapping, which lives as long as `self`, and is aligned, since the mapping begins
        // at a page and `at` is a multiple of 4. The kernel and we only ever touch it as a whole.
        Some(unsafe { self.start.add(at).cast::<AtomicU32>().as_ref() })
    }

    /// Returns whether the slot at `at` holds a frame.
    pub(crate) fn is_ours(&self, at: usize) -> bool {
        self.status(at).is_some_and(|status| status.load(Ordering::Acquire) & SLOT_IS_OURS != 0)
    }

    /// Returns the frame in the slot of `slot_bytes` bytes at `at`; `None` if it was truncated or the slot
    /// belongs to the kernel.
    pub(crate) fn frame(&mut self, at: usize, slot_bytes: usize) -> Option<&mut [u8]> {
        if !self.is_ours(at) || at.checked_add(slot_bytes)? > self.bytes {
            return None;
        }
        // SAFETY: the slot lies within the mapping, and until it is given back the kernel does not touch it; `&mut self`
        // keeps everybody else away. Its bytes take any value.
        let slot = unsafe { std::slice::from_raw_parts_mut(self.start.add(at).as_ptr(), slot_bytes) };
        let word = |at: usize| slot.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes);
        let (length, bytes) = (word(SLOT_LENGTH_AT)?, word(SLOT_BYTES_AT)?);
        let frame_at = slot.get(SLOT_FRAME_AT..)?.first_chunk().copied().map(u16::from_ne_bytes)?;
        let frame = usize::from(frame_at)..usize::from(frame_at) + bytes as usize;
        if bytes < length { None } else { slot.get_mut(frame) }
    }

    /// Returns a slot to the kernel.
    pub(crate) fn give_back(&mut self, at: usize) {
        if let Some(status) = self.status(at) {
            status.store(0, Ordering::Release);
        }
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `receive_ring` with this size; nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
