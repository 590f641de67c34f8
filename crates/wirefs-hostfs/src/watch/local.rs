//! File systems that report all their changes.

use rustix::fd::BorrowedFd;

/// The numbers (`f_type` of `statfs`) of file systems that change only through this kernel.
///
/// All others are excluded. Other machines change network file systems, a user-space file system (FUSE) may change
/// at any time, and virtual ones (`proc`, `sysfs`) change without events.
///
/// # Source
/// `statfs(2)`, the kernel's `linux/magic.h`.
const LOCAL: [u32; 24] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // Btrfs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0xf2f5_2010, // F2FS
    0x2fc1_2fc1, // ZFS
    0xca45_1a4e, // bcachefs
    0x794c_7630, // overlay: its layers must not change beneath it
    0x3153_464a, // JFS
    0x5265_4973, // ReiserFS
    0x3434,      // NILFS2
    0x4d44,      // FAT
    0x2011_bab0, // exFAT
    0x7366_746e, // NTFS (ntfs3)
    0x5346_544e, // NTFS (ntfs)
    0x4244,      // HFS
    0x482b,      // HFS+
    0x1501_3346, // UDF
    0x9660,      // ISO 9660
    0x7371_7368, // SquashFS
    0xe0f5_e1e2, // EROFS
    0x2405_1905, // UBIFS
    0x72b6,      // JFFS2
];

/// Whether this kernel reports each change of the file system of `fd`.
pub(super) fn reports_all_changes(fd: BorrowedFd<'_>) -> bool {
    // The type is signed on some systems; the lower half has the number on all of them.
    rustix::fs::fstatfs(fd).is_ok_and(|figures| LOCAL.contains(&(figures.f_type as u32)))
}
