//! Text of a peer, made harmless for a terminal and a log.

/// Returns the text on one line: characters that move the cursor, hide or reorder text are escaped. Else a peer could
/// forge lines, or give commands to the terminal.
pub fn printable(text: &[u8]) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in String::from_utf8_lossy(text).chars() {
        match is_hidden(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// Returns text of several lines, each as [`printable`] has it.
pub fn printable_lines(text: &[u8]) -> String {
    let lines: Vec<String> = text.split(|byte| *byte == b'\n').map(printable).collect();
    lines.join("\n")
}

/// Returns whether a character moves the cursor, hides or reorders text. All of them have four hexadecimal digits.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::{printable, printable_lines};

    // S-188
    #[test]
    fn control_characters_are_escaped_and_text_is_not() {
        assert_eq!(printable_lines("Grüße\n日本".as_bytes()), "Grüße\n日本");
        assert_eq!(printable("Grüße\n日本".as_bytes()), "Grüße\\n日本");
        assert_eq!(printable(b"\x1b]0;title\x07\r\x1b[2J"), "\\u{1b}]0;title\\u{7}\\r\\u{1b}[2J");
        assert_eq!(printable("a\u{9b}b\u{202e}c".as_bytes()), "a\\u{9b}b\\u{202e}c");
        assert_eq!(printable(b"\xff\x00"), "\u{fffd}\\u{0}");
    }
}
