//! Lines per file and per function.

use crate::finding::Finding;
use crate::rust::function::Function;
use crate::rust::{RustFile, words};
use crate::tree::Tree;

const FILE_LINES_WARN: usize = 450;
const FILE_LINES_MAX: usize = 800;
const LIB_LINES_MAX: usize = 100;
/// The maximum lines of a function, from `fn` to its closing brace.
pub(crate) const FUNCTION_LINES_MAX: usize = 70;
/// The comment that excuses a longer function which is mostly one `match` or one table.
const EXCEPTION: &str = "tidy: long because ";
/// The minimum percentage of a long function's lines in that `match` or table.
const EXCEPTION_BLOCK_PERCENT_MIN: usize = 60;
/// The number of lines above `fn` that are searched for the comment.
const EXCEPTION_LINES_ABOVE: usize = 12;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust.iter().flat_map(|file| file_size(file).into_iter().chain(function_sizes(file))).collect()
}

fn file_size(file: &RustFile) -> Option<Finding> {
    let lines = file.line_count();
    if file.path.ends_with("src/lib.rs") && lines > LIB_LINES_MAX {
        let message = format!("{lines} lines; lib.rs has at most {LIB_LINES_MAX}");
        return Some(Finding::error(&file.path, 1, message, "leave crate doc, mod lines and pub use here"));
    }
    let fix = "split it by concept; one type per state, one file per operation";
    if lines > FILE_LINES_MAX {
        let message = format!("{lines} lines; a file has at most {FILE_LINES_MAX}");
        return Some(Finding::error(&file.path, 1, message, fix));
    }
    (lines > FILE_LINES_WARN).then(|| {
        Finding::warning(&file.path, 1, format!("{lines} lines; warning limit {FILE_LINES_WARN}"), fix)
    })
}

fn function_sizes(file: &RustFile) -> Vec<Finding> {
    let too_long = |function: &&Function| lines_of(file, &function.span) > FUNCTION_LINES_MAX;
    file.functions.iter().filter(too_long).filter_map(|function| too_long_finding(file, function)).collect()
}

fn too_long_finding(file: &RustFile, function: &Function) -> Option<Finding> {
    let lines = lines_of(file, &function.span);
    let line = file.line(function.span.start);
    let name = &function.name;
    if !is_excused(file, function) {
        let message = format!("fn {name} has {lines} lines of at most {FUNCTION_LINES_MAX}");
        return Some(Finding::error(&file.path, line, message, "split it, or turn its table into data"));
    }
    if longest_block_lines(file, function) * 100 < lines * EXCEPTION_BLOCK_PERCENT_MIN {
        let message = format!("fn {name} has {lines} lines and an exception, but is not one match or table");
        return Some(Finding::error(
            &file.path,
            line,
            message,
            "split it; the exception is for one big match or table",
        ));
    }
    None
}

/// Returns whether a comment above the function or at the start of its body has the reason for its length.
fn is_excused(file: &RustFile, function: &Function) -> bool {
    let first = file.line(function.span.start);
    let head = file.line(function.body.start) + 1;
    let lines = file.mask.comments.lines().enumerate().skip(first.saturating_sub(EXCEPTION_LINES_ABOVE + 1));
    lines
        .take_while(|&(number, _)| number < head)
        .filter_map(|(_, comment)| comment.split_once(EXCEPTION))
        .any(|(_, reason)| !reason.trim().is_empty())
}

/// Returns the number of lines of the longest `match` or bracketed table in a function.
fn longest_block_lines(file: &RustFile, function: &Function) -> usize {
    let code = file.mask.code.get(..function.body.end).unwrap_or_default();
    let matches = words(code, "match").filter(|at| function.body.contains(at)).filter_map(|at| {
        let open = at + code.get(at..)?.find('{')?;
        Some(open)
    });
    let tables = code.match_indices('[').map(|(at, _)| at).filter(|at| function.body.contains(at));
    let blocks = matches.chain(tables).map(|open| open..crate::rust::attribute::closing(code, open));
    blocks.map(|block| lines_of(file, &block)).max().unwrap_or(0)
}

/// Returns the number of lines of a span.
pub(crate) fn lines_of(file: &RustFile, span: &crate::rust::Span) -> usize {
    file.line(span.end.saturating_sub(1)) - file.line(span.start) + 1
}
