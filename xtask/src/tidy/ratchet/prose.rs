//! Markdown and comments as sentences.

/// Splits text where a sentence ends: at `.`, `?` or `!` before a space, and at the end.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let mut start = 0;
    let mut ends: Vec<usize> = Vec::new();
    for at in 0..bytes.len() {
        let is_mark = matches!(bytes.get(at), Some(b'.' | b'?' | b'!'));
        if is_mark && matches!(bytes.get(at + 1), Some(b' ') | None) {
            ends.push(at + 1);
        }
    }
    if ends.last() != Some(&bytes.len()) {
        ends.push(bytes.len());
    }
    ends.into_iter().filter_map(move |end| {
        let sentence = text.get(start..end)?.trim();
        start = end;
        (!sentence.is_empty()).then_some(sentence)
    })
}

/// The text behind the bullet or number of a list item, and whether there was one.
pub(super) fn without_bullet(text: &str) -> (&str, bool) {
    let trimmed = text.trim_start();
    if let Some(rest) = trimmed.strip_prefix("- ").or_else(|| trimmed.strip_prefix("* ")) {
        return (rest, true);
    }
    let digits = trimmed.chars().take_while(char::is_ascii_digit).count();
    match trimmed.get(digits..).and_then(|rest| rest.strip_prefix(". ")) {
        Some(rest) if digits > 0 => (rest, true),
        _ => (text, false),
    }
}

/// The paragraphs of a Markdown page, each with its first line: list items, table cells and headings are paragraphs of their own, code
/// blocks are none.
pub(super) fn paragraphs(page: &str) -> Vec<(usize, String)> {
    let mut paragraphs: Vec<(usize, String)> = Vec::new();
    let (mut is_code, mut is_open) = (false, false);
    for (number, line) in page.lines().enumerate() {
        let text = line.trim();
        if text.starts_with("```") {
            is_code = !is_code;
            is_open = false;
        } else if is_code || text.is_empty() || line.starts_with("    ") && !is_open {
            is_open = false;
        } else if text.starts_with('|') {
            let cells = text.split('|').map(|cell| (number + 1, cell.trim().to_owned()));
            paragraphs.extend(cells.filter(|(_, cell)| !cell.is_empty()));
            is_open = false;
        } else {
            let (text, begins_item) = without_bullet(text);
            match paragraphs.last_mut().filter(|_| is_open && !begins_item && !text.starts_with('#')) {
                Some((_, open)) => {
                    open.push(' ');
                    open.push_str(text);
                }
                None => paragraphs.push((number + 1, text.to_owned())),
            }
            is_open = !text.starts_with('#');
        }
    }
    paragraphs
}

/// The pages that people read: Markdown of the project, without figures' data.
pub(super) fn is_page(path: &str) -> bool {
    path.ends_with(".md")
}
