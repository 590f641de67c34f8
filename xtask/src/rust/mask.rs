//! Separates code from comments, strings and characters, without moving any byte.

use super::is_word;

/// Two copies of a source text of the same length: one with everything but code blanked, one with everything but
/// comments. Both keep line ends; the code keeps the quotes of strings, but not their contents.
pub(crate) struct Mask {
    /// Code only.
    pub(crate) code: String,
    /// Comments only, including their slashes.
    pub(crate) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Code,
    Comment,
    Content,
}

impl Mask {
    /// Parses `text`. An unterminated string or comment extends to the end.
    pub(crate) fn new(text: &str) -> Mask {
        let mut mask =
            Mask { code: String::with_capacity(text.len()), comments: String::with_capacity(text.len()) };
        let mut rest = text;
        let mut last = ' ';
        while let Some(first) = rest.chars().next() {
            let (kind, length) = next_part(rest, last);
            let (piece, after) = rest.split_at(length.min(rest.len()));
            match kind {
                TextKind::Code => mask.push(piece, TextKind::Code),
                TextKind::Comment => mask.push(piece, TextKind::Comment),
                TextKind::Content => mask.push_quoted(piece),
            }
            last = if kind == TextKind::Code { first } else { ' ' };
            rest = after;
        }
        mask
    }

    fn push(&mut self, piece: &str, kind: TextKind) {
        for c in piece.chars() {
            let blank = || std::iter::repeat_n(if c == '\n' { '\n' } else { ' ' }, c.len_utf8());
            if kind == TextKind::Code {
                self.code.push(c);
            } else {
                self.code.extend(blank());
            }
            if kind == TextKind::Comment {
                self.comments.push(c);
            } else {
                self.comments.extend(blank());
            }
        }
    }

    /// Pushes a string or character literal: its quotes as code, its contents blanked.
    fn push_quoted(&mut self, piece: &str) {
        for c in piece.chars() {
            let kind = if c == '"' || c == '\'' { TextKind::Code } else { TextKind::Content };
            self.push(c.encode_utf8(&mut [0; 4]), kind);
        }
    }
}

/// Returns the type and the length of the next part of `rest`. `last` is the character before it.
fn next_part(rest: &str, last: char) -> (TextKind, usize) {
    if rest.starts_with("//") {
        return (TextKind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (TextKind::Comment, block_comment_length(rest));
    }
    if !is_word(last)
        && let Some(length) = raw_string_length(rest)
    {
        return (TextKind::Content, length);
    }
    if rest.starts_with('"') {
        return (TextKind::Content, quoted_length(rest, '"'));
    }
    if let Some(length) = character_length(rest) {
        return (TextKind::Content, length);
    }
    (TextKind::Code, rest.chars().next().map_or(1, char::len_utf8))
}

fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(here) = rest.get(at..).filter(|here| !here.is_empty()) {
        if here.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += here.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Returns the length of `r"…"`, `r#"…"#`, `br"…"` or `cr"…"`, if `rest` begins with one.
fn raw_string_length(rest: &str) -> Option<usize> {
    let after_r = rest.strip_prefix(['b', 'c']).unwrap_or(rest).strip_prefix('r')?;
    let hashes = after_r.bytes().take_while(|&byte| byte == b'#').count();
    let content = after_r.get(hashes..)?.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let head = rest.len() - content.len();
    Some(content.find(&end).map_or(rest.len(), |at| head + at + end.len()))
}

/// Returns the length of a text between two `quote`s, with backslash escapes.
fn quoted_length(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' {
            is_escaped = true;
        } else if c == quote {
            return at + 1;
        }
    }
    rest.len()
}

/// Returns the length of a character literal; `None` for a lifetime.
fn character_length(rest: &str) -> Option<usize> {
    let mut inside = rest.strip_prefix('\'')?.chars();
    match inside.next()? {
        '\\' => Some(quoted_length(rest, '\'')),
        c if inside.next() == Some('\'') => Some(c.len_utf8() + 2),
        _ => None,
    }
}
