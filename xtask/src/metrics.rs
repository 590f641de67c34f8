//! `cargo xtask metrics`: statistics of the code, and their goals.

use std::fmt::Write as _;

use crate::rust::RustFile;
use crate::tidy::{FUNCTION_LINES_MAX, lines_of, panics};
use crate::tree::Tree;

#[cfg(test)]
mod tests;

/// Returns a Markdown table with one row per statistic.
pub(crate) fn table(tree: &Tree) -> String {
    let rows = [
        ("files, lines", files_and_lines(tree), "–"),
        ("median lines per file", line_counts(tree, 50).to_string(), "≤ 200"),
        ("P90 / largest", format!("{} / {}", line_counts(tree, 90), line_counts(tree, 100)), "≤ 450 / 800"),
        ("functions over 70 lines", long_functions(tree), "0"),
        ("unwrap per 1,000 lines outside tests", panic_rate(tree), "0"),
        ("public items documented", documented(tree), "100 %"),
    ];
    let mut text = String::from("| measured | here | aim |\n|---|---|---|\n");
    for (name, here, aim) in rows {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {name} | {here} | {aim} |");
    }
    text
}

fn files_and_lines(tree: &Tree) -> String {
    let lines: usize = tree.rust.iter().map(RustFile::line_count).sum();
    format!("{}, {lines}", tree.rust.len())
}

/// Returns the given percentile of the lines per file.
fn line_counts(tree: &Tree, percent: usize) -> usize {
    let mut counts: Vec<usize> = tree.rust.iter().map(RustFile::line_count).collect();
    counts.sort_unstable();
    let rank = (counts.len() * percent).div_ceil(100).saturating_sub(1);
    counts.get(rank).copied().unwrap_or(0)
}

fn long_functions(tree: &Tree) -> String {
    let lengths = tree.rust.iter().flat_map(|file| file.functions.iter().map(|f| lines_of(file, &f.span)));
    let lengths: Vec<usize> = lengths.collect();
    let long = lengths.iter().filter(|&&lines| lines > FUNCTION_LINES_MAX).count();
    format!("{long} of {} ({} %)", lengths.len(), tenths(long * 100, lengths.len()))
}

fn panic_rate(tree: &Tree) -> String {
    let found: usize = tree.rust.iter().map(|file| panics(file).count()).sum();
    let lines: usize = tree.rust.iter().map(lines_outside_tests).sum();
    tenths(found * 1000, lines)
}

fn lines_outside_tests(file: &RustFile) -> usize {
    let mut at = 0;
    let starts = file.text.split_inclusive('\n').map(|line| {
        let start = at;
        at += line.len();
        start
    });
    starts.filter(|&start| !file.is_test(start)).count()
}

/// Counts public items outside tests that have a doc comment. Modules are excluded: their files have the doc.
fn documented(tree: &Tree) -> String {
    let items = tree.rust.iter().flat_map(public_items);
    let (documented, all) =
        items.fold((0, 0), |(documented, all), has_doc| (documented + usize::from(has_doc), all + 1));
    format!("{documented} of {all} ({} %)", tenths(documented * 100, all))
}

/// Returns for each public item of a file whether it is documented.
fn public_items(file: &RustFile) -> Vec<bool> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut start = 0;
    let mut items = Vec::new();
    for (number, line) in file.mask.code.split_inclusive('\n').enumerate() {
        let code = line.trim();
        let is_public =
            code.starts_with("pub ") && !code.starts_with("pub use") && !code.starts_with("pub mod");
        if is_public && !file.is_test(start) {
            items.push(has_doc(file, &lines, number));
        }
        start += line.len();
    }
    items
}

/// Returns whether a doc comment precedes line `number` (counted from 0), ignoring attributes.
fn has_doc(file: &RustFile, lines: &[&str], number: usize) -> bool {
    let is_attribute = |number: usize| {
        let spans = file.attributes.iter().map(|attribute| &attribute.span);
        spans
            .map(|span| file.line(span.start)..=file.line(span.end))
            .any(|lines| lines.contains(&(number + 1)))
    };
    let above = (0..number).rev().find(|&number| !is_attribute(number));
    above.and_then(|number| lines.get(number)).is_some_and(|line| {
        // In a macro definition the doc comment comes from the macro's caller.
        let line = line.trim();
        line.starts_with("///") || line.starts_with("$(#[")
    })
}

/// Formats `part / whole` with one decimal.
fn tenths(part: usize, whole: usize) -> String {
    let tenths = (part * 10).checked_div(whole).unwrap_or(0);
    format!("{}.{}", tenths / 10, tenths % 10)
}
