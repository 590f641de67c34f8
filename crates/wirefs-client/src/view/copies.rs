//! The private copies that are being published, and the files that they replaced.

use crate::view::conflicts::ReplacedFiles;
use crate::view::publications::Publications;

/// Published copies.
#[derive(Debug, Default)]
pub(crate) struct PrivateCopies {
    pub(crate) publications: Publications,
    pub(crate) replaced: ReplacedFiles,
}
