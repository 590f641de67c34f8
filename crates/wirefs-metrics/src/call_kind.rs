//! The operations of programs on a mount.

macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        /// An operation of a program, as the kernel passes it on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum CallKind { $($(#[$doc])* $variant,)* }

        impl CallKind {
            /// All operations, in the order of their declaration.
            pub const ALL: [CallKind; [$($name),*].len()] = [$(CallKind::$variant),*];

            /// Returns the name in metrics, JSON and messages.
            pub fn name(self) -> &'static str {
                match self { $(CallKind::$variant => $name,)* }
            }
        }
    };
}

operations! {
    /// Looks up a name.
    Lookup "lookup",
    /// Reads attributes.
    Getattr "getattr",
    /// Changes attributes.
    Setattr "setattr",
    /// Reads the target of a symbolic link.
    Readlink "readlink",
    /// Creates a node that is no regular file.
    Mknod "mknod",
    /// Creates a directory.
    Mkdir "mkdir",
    /// Creates a symbolic link.
    Symlink "symlink",
    /// Creates and opens a file.
    Create "create",
    /// Opens a file without a name.
    Tmpfile "tmpfile",
    /// Removes a file.
    Unlink "unlink",
    /// Removes a directory.
    Rmdir "rmdir",
    /// Renames.
    Rename "rename",
    /// Makes a hard link.
    Link "link",
    /// Opens a file.
    Open "open",
    /// Reads.
    Read "read",
    /// Writes.
    Write "write",
    /// Closes a descriptor.
    Flush "flush",
    /// Ends an open file.
    Release "release",
    /// Waits for stable storage.
    Fsync "fsync",
    /// Opens a directory.
    Opendir "opendir",
    /// Lists a directory.
    Readdir "readdir",
    /// Ends an open directory.
    Releasedir "releasedir",
    /// Waits for stable storage of the whole file system.
    Syncfs "syncfs",
    /// Reads the figures of the file system.
    Statfs "statfs",
    /// Changes an extended attribute.
    Setxattr "setxattr",
    /// Reads extended attributes.
    Getxattr "getxattr",
    /// Checks permissions.
    Access "access",
    /// Tests, takes or releases a lock.
    Lock "lock",
    /// Allocates space.
    Fallocate "fallocate",
    /// Finds data or holes.
    Lseek "lseek",
    /// Copies within the mount.
    Copy "copy",
}
