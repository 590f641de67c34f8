//! Text that fits the columns of a terminal.

/// Stands for the text that is left out.
const ELLIPSIS: char = '…';
/// Before each line of a mount below its first one, and between the parts of a line.
const INDENT: &str = "  ";
const BETWEEN: &str = " · ";

/// Returns the most columns that a character takes: those of East Asia and pictures take two.
fn columns_of(character: char) -> usize {
    match character {
        '\u{1100}'..='\u{115f}' | '\u{2300}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{2e80}'.. => 2,
        _ => 1,
    }
}

/// Returns the most columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Returns the part of a line that fits, without blanks at its end.
pub(super) fn cut(line: &str, columns: usize) -> String {
    let mut taken = 0;
    let fits = |character: &char| {
        taken += columns_of(*character);
        taken <= columns
    };
    line.chars().take_while(fits).collect::<String>().trim_end().to_owned()
}

/// Returns the text if it fits, else its end: that of a path tells most.
pub(super) fn end_of(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut taken = columns_of(ELLIPSIS);
    let fits = |character: &char| {
        taken += columns_of(*character);
        taken <= columns
    };
    let end: Vec<char> = text.chars().rev().take_while(fits).collect();
    std::iter::once(ELLIPSIS).chain(end.into_iter().rev()).collect()
}

/// Returns lines of these parts, as many in each as fit.
pub(super) fn wrapped<'a>(parts: impl Iterator<Item = &'a str>, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if width(line) + width(BETWEEN) + width(part) <= columns => {
                line.push_str(BETWEEN);
                line.push_str(part);
            }
            _ => lines.push(format!("{INDENT}{part}")),
        }
    }
    lines
}
