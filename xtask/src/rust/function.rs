//! Functions and their lengths.

use super::attribute::closing;
use super::{Span, is_word, words};

/// A function with a body.
pub(crate) struct Function {
    /// The name.
    pub(crate) name: String,
    /// The bytes from `fn` to the closing brace.
    pub(crate) span: Span,
    /// The body, including its braces.
    pub(crate) body: Span,
}

/// Returns all functions with a body; `fn(…)` types and declarations are skipped.
pub(super) fn functions(code: &str) -> Vec<Function> {
    words(code, "fn").filter_map(|start| function(code, start)).collect()
}

fn function(code: &str, start: usize) -> Option<Function> {
    let after = code.get(start + 2..)?;
    let name: String = after.trim_start().chars().take_while(|&c| is_word(c)).collect();
    if name.is_empty() {
        return None;
    }
    let mut at = start + 2;
    loop {
        match code.as_bytes().get(at)? {
            b'(' | b'[' => at = closing(code, at),
            b';' => return None,
            b'{' => break,
            _ => at += 1,
        }
    }
    let end = closing(code, at);
    Some(Function { name, span: start..end, body: at..end })
}
