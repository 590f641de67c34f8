//! A directory behind an SFTP server as a [`Tree`](wirefs_server::Tree) that answers Op.
//!
//! *Holds*: an Op request costs one round trip, or two if it must open a file first: the requests of SFTP that it needs
//! are sent together. A change sends all its requests before the session's next change sends its own, so the server
//! executes them in order. After a lost connection the tree dials again, repeats the requests that may be repeated, and
//! keeps the order of changes. An object keeps its id while it is renamed through this tree. Nothing that the server
//! sends is trusted.
//!
//! *Never*: leases (SFTP reports no changes); a cache; inode numbers of the server (SFTP has none).
//!
//! *Drive it*:
//! ```no_run
//! use wirefs_carrier::Login;
//! use wirefs_carrier::ssh::{SshOptions, SubsystemDial};
//! use wirefs_op::TreePath;
//! use wirefs_op::message::version::BootId;
//! use wirefs_server::{SessionKey, Tree};
//! use wirefs_sftp::SftpTree;
//!
//! let login = Login { user: None, host: "nas".into(), port: None };
//! let dial = SubsystemDial::new(login, "sftp", SshOptions::default());
//! let tree = SftpTree::open(Box::new(dial), b"photos", BootId(1))?;
//! let attached = tree.attach(SessionKey(1), &TreePath::root())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! *Proved by*: golden bytes and unit tests here, and the mounts in `wirefs` (`tests/suite/sftp.rs`) against OpenSSH's
//! sftp-server.
//!
//! # Source
//! draft-ietf-secsh-filexfer-02 (SFTP version 3), and OpenSSH's `PROTOCOL`, sections 4.1 to 4.10.

mod attributes;
mod dial;
mod identity;
mod limits;
mod message;
mod remote;
mod tree;
mod wire;

pub use dial::{SftpDial, SftpStream};
pub use remote::SftpError;
pub use tree::SftpTree;
