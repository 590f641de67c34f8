//! A page of the documentation, part of which a benchmark writes.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::LabError;

const BEGIN: &str = "<!-- bench: begin (written by `wirefs-lab bench`; do not edit by hand) -->";
const END: &str = "<!-- bench: end -->";
const FIRST: &str = "# Benchmarks\n\n";

/// A page whose text between two marker comments is replaced, and whose other text is the authors'.
#[derive(Debug)]
pub struct Page {
    path: PathBuf,
    before: String,
    after: String,
}

impl Page {
    /// Reads the page at `path`, or begins a new one. Read it before measuring, so that a page that cannot be written
    /// is known at once.
    ///
    /// # Errors
    /// [`LabError::Io`] when it cannot be read; [`LabError::Page`] when its markers are not one pair.
    pub fn open(path: &Path) -> Result<Page, LabError> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => format!("{FIRST}{BEGIN}\n{END}\n"),
            read => read.map_err(|error| LabError::io(format!("read {}", path.display()), error))?,
        };
        let (before, after) =
            split(&text).ok_or_else(|| LabError::Page { path: path.to_owned(), begin: BEGIN, end: END })?;
        Ok(Page { path: path.to_owned(), before: before.to_owned(), after: after.to_owned() })
    }

    /// Writes the page with `text` between its markers.
    ///
    /// # Errors
    /// [`LabError::Io`].
    pub fn write(&self, text: &str) -> Result<(), LabError> {
        fs::write(&self.path, self.with(text))
            .map_err(|error| LabError::io(format!("write {}", self.path.display()), error))
    }

    fn with(&self, text: &str) -> String {
        format!("{}{BEGIN}\n{}\n{END}{}", self.before, text.trim_end(), self.after)
    }
}

/// What stands before and after the marked part.
fn split(text: &str) -> Option<(&str, &str)> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    let once = !after.contains(BEGIN) && !after.contains(END) && !before.contains(END);
    once.then_some((before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Option<Page> {
        let (before, after) = split(text)?;
        Some(Page { path: PathBuf::new(), before: before.to_owned(), after: after.to_owned() })
    }

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let page = page(&format!("intro\n{BEGIN}\nold\n{END}\noutro\n")).unwrap();
        assert_eq!(page.with("new\n\n"), format!("intro\n{BEGIN}\nnew\n{END}\noutro\n"));
    }

    #[test]
    fn a_page_without_one_pair_of_markers_is_refused() {
        for text in ["", BEGIN, END, &format!("{END}{BEGIN}"), &format!("{BEGIN}{END}{END}")] {
            assert!(page(text).is_none(), "{text}");
        }
    }
}
