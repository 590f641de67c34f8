//! Separates code from comments, strings and characters, keeping each byte's place.

use super::is_word;

/// Two copies of a source text, of its length: one with everything but code blanked, one with everything but
/// comments. Line ends stay in both; the quotes of a string stay in the code, its content does not.
pub(crate) struct Mask {
    /// Code only.
    pub(crate) code: String,
    /// Comments only, with their slashes.
    pub(crate) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    Content,
}

impl Mask {
    /// Reads `text` once. Text that ends inside a string or comment is taken as if it ended there.
    pub(crate) fn new(text: &str) -> Mask {
        let mut mask =
            Mask { code: String::with_capacity(text.len()), comments: String::with_capacity(text.len()) };
        let mut rest = text;
        let mut last = ' ';
        while let Some(first) = rest.chars().next() {
            let (part, length) = next_part(rest, last);
            let (piece, after) = rest.split_at(length.min(rest.len()));
            match part {
                Part::Code => mask.push(piece, Part::Code),
                Part::Comment => mask.push(piece, Part::Comment),
                Part::Content => mask.push_quoted(piece),
            }
            last = if part == Part::Code { first } else { ' ' };
            rest = after;
        }
        mask
    }

    fn push(&mut self, piece: &str, part: Part) {
        for c in piece.chars() {
            let blank = || std::iter::repeat_n(if c == '\n' { '\n' } else { ' ' }, c.len_utf8());
            if part == Part::Code {
                self.code.push(c);
            } else {
                self.code.extend(blank());
            }
            if part == Part::Comment {
                self.comments.push(c);
            } else {
                self.comments.extend(blank());
            }
        }
    }

    /// A string or character: its quotes are code, the rest is blanked.
    fn push_quoted(&mut self, piece: &str) {
        for c in piece.chars() {
            let part = if c == '"' || c == '\'' { Part::Code } else { Part::Content };
            self.push(c.encode_utf8(&mut [0; 4]), part);
        }
    }
}

/// What `rest` begins with, and for how many bytes. `last` is the character before it.
fn next_part(rest: &str, last: char) -> (Part, usize) {
    if rest.starts_with("//") {
        return (Part::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Part::Comment, block_comment_length(rest));
    }
    if !is_word(last)
        && let Some(length) = raw_string_length(rest)
    {
        return (Part::Content, length);
    }
    if rest.starts_with('"') {
        return (Part::Content, quoted_length(rest, '"'));
    }
    if let Some(length) = character_length(rest) {
        return (Part::Content, length);
    }
    (Part::Code, rest.chars().next().map_or(1, char::len_utf8))
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

/// The length of `r"…"`, `r#"…"#`, `br"…"` or `cr"…"`, if `rest` begins with one.
fn raw_string_length(rest: &str) -> Option<usize> {
    let after_r = rest.strip_prefix(['b', 'c']).unwrap_or(rest).strip_prefix('r')?;
    let hashes = after_r.bytes().take_while(|&byte| byte == b'#').count();
    let content = after_r.get(hashes..)?.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let head = rest.len() - content.len();
    Some(content.find(&end).map_or(rest.len(), |at| head + at + end.len()))
}

/// The length of a text between two `quote`s, with `\` before a quote that does not end it.
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

/// The length of a character literal, if `rest` begins with one and not with a lifetime.
fn character_length(rest: &str) -> Option<usize> {
    let mut inside = rest.strip_prefix('\'')?.chars();
    match inside.next()? {
        '\\' => Some(quoted_length(rest, '\'')),
        c if inside.next() == Some('\'') => Some(c.len_utf8() + 2),
        _ => None,
    }
}
