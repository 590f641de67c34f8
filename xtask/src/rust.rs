//! Rust source, taken apart far enough for the checks: what is code, what is comment, what is test.

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
    /// Where it is, from the root.
    pub(crate) path: String,
    /// The text as it is.
    pub(crate) text: String,
    /// The code alone and the comments alone, each as long as the text.
    pub(crate) mask: Mask,
    /// All attributes, in order.
    pub(crate) attributes: Vec<Attribute>,
    /// All functions that have a body, in order.
    pub(crate) functions: Vec<Function>,
    whole_file_is_test: bool,
    test_spans: Vec<Span>,
    line_starts: Vec<usize>,
}

impl RustFile {
    /// Takes `text` apart.
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

    /// Marks the files of modules that their parent declares under `#[cfg(test)]`.
    pub(crate) fn mark_test_modules(files: &mut [RustFile]) {
        let declared: Vec<String> = files.iter().flat_map(RustFile::test_modules).collect();
        for file in files {
            let is_declared = |stem: &String| {
                file.path == format!("{stem}.rs") || file.path.starts_with(&format!("{stem}/"))
            };
            file.whole_file_is_test |= declared.iter().any(is_declared);
        }
    }

    /// The modules declared here by `mod name;`: where, and how they are called.
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

    /// Where the modules that this file declares lie: `src/a` for `src/a.rs`, `src` for `src/lib.rs`.
    pub(crate) fn module_folder(&self) -> &str {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        match self.name() {
            "lib" | "main" | "mod" => folder,
            _ => self.path.trim_end_matches(".rs"),
        }
    }

    /// The file's name without folder and ending.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs")
    }

    /// The line of a byte, counted from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= at)
    }

    /// How many lines the file has.
    pub(crate) fn line_count(&self) -> usize {
        self.text.lines().count()
    }

    /// Whether a byte belongs to a test.
    pub(crate) fn is_test(&self, at: usize) -> bool {
        self.whole_file_is_test || self.test_spans.iter().any(|span| span.contains(&at))
    }

    /// Whether an attribute that `matches` covers a byte.
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

/// Whether `c` can be part of an identifier.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where `word` stands in `code` as a whole word.
pub(crate) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = code.get(..at).and_then(|text| text.chars().next_back());
        let after = code.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}
