//! A documentation page with a section that a benchmark writes.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// The lines around the part of a page that a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMarkers {
    /// The line before the part.
    pub begin: &'static str,
    /// The line after the part.
    pub end: &'static str,
}

impl PageMarkers {
    /// The part that `wirefs-lab bench` writes.
    pub const BENCH: PageMarkers = PageMarkers {
        begin: "<!-- bench: begin (written by `wirefs-lab bench`; do not edit by hand) -->",
        end: "<!-- bench: end -->",
    };
    /// The part that `wirefs-lab cards` writes.
    pub const CARDS: PageMarkers = PageMarkers {
        begin: "<!-- cards: begin (written by `wirefs-lab cards`; do not edit by hand) -->",
        end: "<!-- cards: end -->",
    };
}

const FIRST: &str = "# Benchmarks\n\n";

/// The prefix of a section heading.
const HEADING: &str = "### ";

/// The results of one configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageSection {
    /// The configuration.
    pub heading: String,
    /// Paragraphs and tables, without headings.
    pub text: String,
}

impl fmt::Display for PageSection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{HEADING}{}\n\n{}", self.heading, self.text.trim_end())
    }
}

/// A page with generated sections between two marker comments, and manual text around them.
#[derive(Debug)]
pub struct ReportPage {
    path: PathBuf,
    markers: PageMarkers,
    before: String,
    sections: Vec<PageSection>,
    after: String,
}

impl ReportPage {
    /// Reads the page at `path`, or starts a new one. Open it before measuring, so that an invalid page is reported at
    /// once.
    ///
    /// # Errors
    /// [`LabError::Io`] when it cannot be read; [`LabError::Page`] when its markers are not one pair.
    pub fn open(path: &Path, markers: PageMarkers) -> Result<ReportPage, LabError> {
        let PageMarkers { begin, end } = markers;
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => format!("{FIRST}{begin}\n{end}\n"),
            read => read.map_err(|error| LabError::io(format!("read {}", path.display()), error))?,
        };
        let page = ReportPage::parse(path, markers, &text);
        page.ok_or_else(|| LabError::Page { path: path.to_owned(), begin, end })
    }

    fn parse(path: &Path, markers: PageMarkers, text: &str) -> Option<ReportPage> {
        let (before, marked, after) = split(markers, text)?;
        Some(ReportPage {
            path: path.to_owned(),
            markers,
            before: before.to_owned(),
            sections: sections(marked),
            after: after.to_owned(),
        })
    }

    /// Writes the page with these sections. A section replaces the one with the same heading, or is appended.
    ///
    /// # Errors
    /// [`LabError::Io`].
    pub fn write(self, measured: &[PageSection]) -> Result<(), LabError> {
        let path = self.path.clone();
        fs::write(&path, self.with(measured))
            .map_err(|error| LabError::io(format!("write {}", path.display()), error))
    }

    fn with(self, measured: &[PageSection]) -> String {
        let mut sections = self.sections;
        for section in measured {
            match sections.iter_mut().find(|known| known.heading == section.heading) {
                Some(known) => *known = section.clone(),
                None => sections.push(section.clone()),
            }
        }
        let text: Vec<String> = sections.iter().map(PageSection::to_string).collect();
        let PageMarkers { begin, end } = self.markers;
        format!("{}{begin}\n{}{end}{}", self.before, text.join("\n"), self.after)
    }
}

/// Returns the sections of a text; drops text before the first heading.
fn sections(text: &str) -> Vec<PageSection> {
    let before = format!("\n{HEADING}");
    let parts = text.split(&before).skip(1);
    let section = |part: &str| {
        let (heading, text) = part.split_once('\n').unwrap_or((part, ""));
        PageSection { heading: heading.to_owned(), text: text.trim().to_owned() }
    };
    parts.map(section).collect()
}

/// Returns the text before, inside and after the marked part.
fn split(PageMarkers { begin, end }: PageMarkers, text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once(begin)?;
    let (marked, after) = rest.split_once(end)?;
    let once = !after.contains(begin) && !after.contains(end) && !before.contains(end);
    once.then_some((before, marked, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = PageMarkers::BENCH.begin;
    const END: &str = PageMarkers::BENCH.end;

    fn section(heading: &str, text: &str) -> PageSection {
        PageSection { heading: heading.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn write_replaces_only_the_measured_sections() {
        let old = "old\n\n### RTT 0 ms\n\none\n\n### RTT 85 ms\n\ntwo\n";
        let page = ReportPage::parse(
            Path::new(""),
            PageMarkers::BENCH,
            &format!("intro\n{BEGIN}\n{old}{END}\noutro\n"),
        )
        .unwrap();
        let with = page.with(&[section("RTT 85 ms", "new\n\n| table |\n"), section("RTT 10 ms", "last")]);
        let text = "### RTT 0 ms\n\none\n\n### RTT 85 ms\n\nnew\n\n| table |\n\n### RTT 10 ms\n\nlast\n";
        assert_eq!(with, format!("intro\n{BEGIN}\n{text}{END}\noutro\n"));
        let again = ReportPage::parse(Path::new(""), PageMarkers::BENCH, &with).unwrap();
        assert_eq!(again.with(&[]), with);
    }

    #[test]
    fn page_without_one_pair_of_markers_is_rejected() {
        for text in ["", BEGIN, END, &format!("{END}{BEGIN}"), &format!("{BEGIN}{END}{END}")] {
            assert!(split(PageMarkers::BENCH, text).is_none(), "{text}");
        }
    }
}
