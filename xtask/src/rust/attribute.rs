//! Attributes and the items that they cover.

use super::{Span, is_word};

/// One `#[…]` or `#![…]`.
pub(crate) struct Attribute {
    /// The bytes from `#` to `]`.
    pub(crate) span: Span,
    /// Whether it is `#![…]`, which covers its whole parent.
    pub(crate) is_inner: bool,
    /// The text between the brackets, including strings.
    pub(crate) content: String,
}

impl Attribute {
    /// Returns the first word: `cfg`, `test`, `expect` …
    pub(crate) fn name(&self) -> &str {
        self.content.split(|c: char| !is_word(c)).next().unwrap_or_default()
    }

    /// Returns whether the item is built for tests only.
    pub(crate) fn marks_test(&self) -> bool {
        match self.name() {
            "test" => true,
            "cfg" => super::words(&self.content, "test").next().is_some() && !self.content.contains("not("),
            _ => false,
        }
    }

    /// Returns whether this is `expect(…)` of one of `lints`, with a reason.
    pub(crate) fn expects(&self, lints: &[&str]) -> bool {
        self.name() == "expect" && self.has_reason() && lints.iter().any(|lint| self.content.contains(lint))
    }

    /// Returns whether it has a nonempty `reason = "…"`.
    pub(crate) fn has_reason(&self) -> bool {
        self.content.split_once("reason").is_some_and(|(_, rest)| {
            rest.trim_start_matches([' ', '=']).strip_prefix('"').is_some_and(|text| !text.starts_with('"'))
        })
    }
}

/// Returns all attributes of a file.
pub(super) fn attributes(text: &str, code: &str) -> Vec<Attribute> {
    let mut found = Vec::new();
    for (start, _) in code.match_indices('#') {
        let after = code.get(start + 1..).unwrap_or_default();
        let is_inner = after.starts_with('!');
        let open = start + 1 + usize::from(is_inner);
        if !code.get(open..).is_some_and(|rest| rest.starts_with('[')) {
            continue;
        }
        let end = closing(code, open);
        let content = text.get(open + 1..end.saturating_sub(1)).unwrap_or_default();
        found.push(Attribute { span: start..end, is_inner, content: content.trim().into() });
    }
    found
}

/// Returns the position after the bracket that closes the one at `open`.
pub(crate) fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// Returns the end of the item, statement or match arm at `from`, skipping its attributes.
pub(crate) fn item_end(code: &str, from: usize) -> usize {
    const ENDS_WITH_BLOCK: [&str; 11] =
        ["pub", "fn", "impl", "struct", "enum", "mod", "unsafe", "async", "trait", "extern", "union"];
    let start = skip_attributes(code, from);
    let first: String = code.get(start..).unwrap_or_default().chars().take_while(|&c| is_word(c)).collect();
    let is_item = ENDS_WITH_BLOCK.contains(&first.as_str());
    let is_binding = matches!(first.as_str(), "let" | "const" | "static" | "use" | "type");
    let mut at = start;
    while let Some(byte) = code.as_bytes().get(at) {
        match byte {
            b';' => return at + 1,
            b',' if !is_item && !is_binding => return at + 1,
            b'{' if !is_binding => return closing(code, at),
            b'(' | b'[' | b'{' => at = closing(code, at),
            b')' | b']' | b'}' => return at,
            _ => at += 1,
        }
    }
    code.len()
}

fn skip_attributes(code: &str, from: usize) -> usize {
    let rest = code.get(from..).unwrap_or_default();
    let start = from + rest.len() - rest.trim_start().len();
    if code.get(start..).is_some_and(|rest| rest.starts_with("#[")) {
        return skip_attributes(code, closing(code, start + 1));
    }
    start
}
