//! The files of one crate that a file imports: paths from `crate`, `super` and its own modules.

use crate::rust::{RustFile, is_word, words};

/// The files behind the paths in `file`, whose name below the sources is `name`; `place` knows the files.
pub(super) fn of(name: &str, file: &RustFile, place: impl Fn(&str) -> Option<usize>) -> Vec<usize> {
    let code = &file.mask.code;
    let module: Vec<&str> = name.trim_end_matches(".rs").split('/').collect();
    let mut found = Vec::new();
    let mut take = |begin: &[&str], at: usize| {
        for path in paths(code.get(at..).unwrap_or_default()) {
            let whole: Vec<&str> = begin.iter().copied().chain(path).collect();
            found.extend(deepest(&whole, &place));
        }
    };
    for at in words(code, "crate").filter(|&at| is_first(code, at)) {
        take(&[], at + "crate".len());
    }
    for at in words(code, "super").filter(|&at| is_first(code, at)) {
        let parent = module.get(..module.len().saturating_sub(1)).unwrap_or_default();
        take(parent, at + "super".len());
    }
    let children = file.declared_modules();
    for (declared, child) in children.iter().filter(|(at, _)| !file.is_test(*at)) {
        let is_use = |at: &usize| at != declared && is_first(code, *at);
        for at in words(code, child).filter(is_use) {
            let below: Vec<&str> = module.iter().copied().chain([*child]).collect();
            if code.get(at + child.len()..).is_some_and(|rest| rest.starts_with("::")) {
                take(&below, at + child.len());
            }
        }
    }
    found
}

/// Whether the word at `at` begins a path.
fn is_first(code: &str, at: usize) -> bool {
    !code.get(..at).is_some_and(|before| before.ends_with("::") || before.ends_with('.'))
}

/// The paths behind a first word: `::a::b` is one, `::a::{b, c::d}` are two.
fn paths(rest: &str) -> Vec<Vec<&str>> {
    let Some(rest) = rest.strip_prefix("::") else { return Vec::new() };
    let rest = rest.trim_start();
    if let Some(inside) = rest.strip_prefix('{') {
        return branches(inside).into_iter().flat_map(branch).collect();
    }
    branch(rest)
}

/// The paths that begin with the first word of `text`.
fn branch(text: &str) -> Vec<Vec<&str>> {
    let text = text.trim_start();
    let first = text.get(..text.find(|c| !is_word(c)).unwrap_or(text.len())).unwrap_or_default();
    let below = paths(text.get(first.len()..).unwrap_or_default());
    if below.is_empty() {
        return vec![vec![first]];
    }
    below.into_iter().map(|path| std::iter::once(first).chain(path).collect()).collect()
}

/// The parts of a brace's contents, up to its end.
fn branches(inside: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let mut start = 0;
    let mut parts = Vec::new();
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => {
                parts.extend(inside.get(start..at));
                break;
            }
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.extend(inside.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// The file of the longest beginning of a path that is a module.
fn deepest(path: &[&str], place: &impl Fn(&str) -> Option<usize>) -> Option<usize> {
    (1..=path.len()).rev().find_map(|length| place(&format!("{}.rs", path.get(..length)?.join("/"))))
}
