//! Parsed Rust source, in as much detail as the checks need: code, comments, attributes, functions and tests.

use crate::rust::attribute::{Attribute, attributes, item_end};
use crate::rust::function::{Function, functions};
use crate::rust::mask::Mask;

pub(crate) mod attribute;
pub(crate) mod function;
pub(crate) mod mask;
#[cfg(test)]
mod tests;

/// A range of bytes in a file.
pub(crate) type Span = std::ops::Range<usize>;

/// One `.rs` file.
pub(crate) struct RustFile {
    /// The path from the root.
    pub(crate) path: String,
    /// The unchanged text.
    pub(crate) text: String,
    /// The code and the comments, separated, each as long as the text.
    pub(crate) mask: Mask,
    /// All attributes, in order of position.
    pub(crate) attributes: Vec<Attribute>,
    /// All functions with a body, in order of position.
    pub(crate) functions: Vec<Function>,
    whole_file_is_test: bool,
    test_spans: Vec<Span>,
    line_starts: Vec<usize>,
}

impl RustFile {
    /// Parses `text`.
    pub(crate) fn new(path: &str, text: &str) -> RustFile {
        let mask = Mask::new(text);
        let attributes = attributes(text, &mask.code);
        let test_spans = attributes
            .iter()
            .filter(|attribute| attribute.marks_test() && !attribute.is_inner)
            .map(|attribute| attribute.span.start..item_end(&mask.code, attribute.span.end))
            .collect();
        let in_test_folder = path.split('/').any(|part| matches!(part, "tests" | "benches" | "fuzz"));
        let whole_file_is_test = in_test_folder
            || path.ends_with("/tests.rs")
            || attributes.iter().any(|attribute| attribute.is_inner && attribute.marks_test());
        let line_ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        RustFile {
            path: path.into(),
            text: text.into(),
            functions: functions(&mask.code),
            line_starts: std::iter::once(0).chain(line_ends.map(|(at, _)| at + 1)).collect(),
            mask,
            attributes,
            whole_file_is_test,
            test_spans,
        }
    }

    /// Marks the files of modules that are declared under `#[cfg(test)]`.
    pub(crate) fn mark_test_modules(files: &mut [RustFile]) {
        let declared: Vec<String> = files.iter().flat_map(RustFile::test_modules).collect();
        for file in files {
            let is_declared = |stem: &String| {
                file.path == format!("{stem}.rs") || file.path.starts_with(&format!("{stem}/"))
            };
            file.whole_file_is_test |= declared.iter().any(is_declared);
        }
    }

    /// Returns the positions and names of modules declared by `mod name;`.
    pub(crate) fn declared_modules(&self) -> Vec<(usize, &str)> {
        let code = &self.mask.code;
        words(code, "mod")
            .filter_map(|at| {
                let rest = code.get(at + 3..)?;
                let name = rest.trim_start().split(|c: char| !is_word(c)).next()?;
                let after = rest.trim_start().get(name.len()..)?;
                (!name.is_empty() && after.trim_start().starts_with(';')).then_some((at, name))
            })
            .collect()
    }

    /// Returns the folder of the declared modules: `src/a` for `src/a.rs`, `src` for `src/lib.rs`.
    pub(crate) fn module_folder(&self) -> &str {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        match self.name() {
            "lib" | "main" | "mod" => folder,
            _ => self.path.trim_end_matches(".rs"),
        }
    }

    /// Returns the file name without folder and extension.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs")
    }

    /// Returns the line of a byte, counted from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= at)
    }

    /// Returns the number of lines.
    pub(crate) fn line_count(&self) -> usize {
        self.text.lines().count()
    }

    /// Returns whether a byte belongs to a test.
    pub(crate) fn is_test(&self, at: usize) -> bool {
        self.whole_file_is_test || self.test_spans.iter().any(|span| span.contains(&at))
    }

    /// Returns whether an attribute for which `matches` is true covers a byte.
    pub(crate) fn is_covered(&self, at: usize, matches: impl Fn(&Attribute) -> bool) -> bool {
        self.attributes.iter().filter(|attribute| matches(attribute)).any(|attribute| {
            attribute.is_inner
                || (attribute.span.start..item_end(&self.mask.code, attribute.span.end)).contains(&at)
        })
    }

    fn test_modules(&self) -> Vec<String> {
        self.declared_modules()
            .into_iter()
            .filter(|&(at, _)| self.test_spans.iter().any(|span| span.contains(&at)))
            .map(|(_, name)| format!("{}/{name}", self.module_folder()))
            .collect()
    }
}

/// Returns whether `c` can be part of an identifier.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the positions of `word` in `code` as a whole word.
pub(crate) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = code.get(..at).and_then(|text| text.chars().next_back());
        let after = code.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}
