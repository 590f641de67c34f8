//! A page of the documentation, part of which a benchmark writes.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// The lines around the part of a page that a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Markers {
    /// The line before the part.
    pub begin: &'static str,
    /// The line after the part.
    pub end: &'static str,
}

impl Markers {
    /// What `wirefs-lab bench` writes.
    pub const BENCH: Markers = Markers {
        begin: "<!-- bench: begin (written by `wirefs-lab bench`; do not edit by hand) -->",
        end: "<!-- bench: end -->",
    };
    /// What `wirefs-lab cards` writes.
    pub const CARDS: Markers = Markers {
        begin: "<!-- cards: begin (written by `wirefs-lab cards`; do not edit by hand) -->",
        end: "<!-- cards: end -->",
    };
}

const FIRST: &str = "# Benchmarks\n\n";

/// How the heading of a section begins.
const HEADING: &str = "### ";

/// What was measured over one wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Which wire.
    pub heading: String,
    /// Paragraphs and tables, without headings.
    pub text: String,
}

impl fmt::Display for Section {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{HEADING}{}\n\n{}", self.heading, self.text.trim_end())
    }
}

/// A page that has sections between two marker comments, and whose other text is the authors'.
#[derive(Debug)]
pub struct Page {
    path: PathBuf,
    markers: Markers,
    before: String,
    sections: Vec<Section>,
    after: String,
}

impl Page {
    /// Reads the page at `path`, or begins a new one. Read it before measuring, so that a page that cannot be written
    /// is known at once.
    ///
    /// # Errors
    /// [`LabError::Io`] when it cannot be read; [`LabError::Page`] when its markers are not one pair.
    pub fn open(path: &Path, markers: Markers) -> Result<Page, LabError> {
        let Markers { begin, end } = markers;
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => format!("{FIRST}{begin}\n{end}\n"),
            read => read.map_err(|error| LabError::io(format!("read {}", path.display()), error))?,
        };
        let page = Page::parse(path, markers, &text);
        page.ok_or_else(|| LabError::Page { path: path.to_owned(), begin, end })
    }

    fn parse(path: &Path, markers: Markers, text: &str) -> Option<Page> {
        let (before, marked, after) = split(markers, text)?;
        Some(Page {
            path: path.to_owned(),
            markers,
            before: before.to_owned(),
            sections: sections(marked),
            after: after.to_owned(),
        })
    }

    /// Writes the page with these sections, each in the place of the one of the same heading, or last.
    ///
    /// # Errors
    /// [`LabError::Io`].
    pub fn write(self, measured: &[Section]) -> Result<(), LabError> {
        let path = self.path.clone();
        fs::write(&path, self.with(measured))
            .map_err(|error| LabError::io(format!("write {}", path.display()), error))
    }

    fn with(self, measured: &[Section]) -> String {
        let mut sections = self.sections;
        for section in measured {
            match sections.iter_mut().find(|known| known.heading == section.heading) {
                Some(known) => *known = section.clone(),
                None => sections.push(section.clone()),
            }
        }
        let text: Vec<String> = sections.iter().map(Section::to_string).collect();
        let Markers { begin, end } = self.markers;
        format!("{}{begin}\n{}{end}{}", self.before, text.join("\n"), self.after)
    }
}

/// The sections of a text; what stands before the first belongs to none, and goes.
fn sections(text: &str) -> Vec<Section> {
    let before = format!("\n{HEADING}");
    let parts = text.split(&before).skip(1);
    let section = |part: &str| {
        let (heading, text) = part.split_once('\n').unwrap_or((part, ""));
        Section { heading: heading.to_owned(), text: text.trim().to_owned() }
    };
    parts.map(section).collect()
}

/// What stands before, in and after the marked part.
fn split(Markers { begin, end }: Markers, text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once(begin)?;
    let (marked, after) = rest.split_once(end)?;
    let once = !after.contains(begin) && !after.contains(end) && !before.contains(end);
    once.then_some((before, marked, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = Markers::BENCH.begin;
    const END: &str = Markers::BENCH.end;

    fn section(heading: &str, text: &str) -> Section {
        Section { heading: heading.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn only_the_sections_that_were_measured_change() {
        let old = "old\n\n### RTT 0 ms\n\none\n\n### RTT 85 ms\n\ntwo\n";
        let page =
            Page::parse(Path::new(""), Markers::BENCH, &format!("intro\n{BEGIN}\n{old}{END}\noutro\n"))
                .unwrap();
        let with = page.with(&[section("RTT 85 ms", "new\n\n| table |\n"), section("RTT 10 ms", "last")]);
        let text = "### RTT 0 ms\n\none\n\n### RTT 85 ms\n\nnew\n\n| table |\n\n### RTT 10 ms\n\nlast\n";
        assert_eq!(with, format!("intro\n{BEGIN}\n{text}{END}\noutro\n"));
        let again = Page::parse(Path::new(""), Markers::BENCH, &with).unwrap();
        assert_eq!(again.with(&[]), with);
    }

    #[test]
    fn a_page_without_one_pair_of_markers_is_refused() {
        for text in ["", BEGIN, END, &format!("{END}{BEGIN}"), &format!("{BEGIN}{END}{END}")] {
            assert!(split(Markers::BENCH, text).is_none(), "{text}");
        }
    }
}
