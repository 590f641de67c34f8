//! Text of a peer, made harmless for a terminal.

/// Returns the text with its control characters escaped, except the end of a line. Else a peer could move the cursor,
/// hide lines or give commands to the terminal.
pub fn printable(text: &[u8]) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in String::from_utf8_lossy(text).chars() {
        match character {
            '\n' => shown.push('\n'),
            // The direction of writing changes what a line seems to say.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => shown.extend(character.escape_unicode()),
            _ if character.is_control() => shown.extend(character.escape_default()),
            _ => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::printable;

    // S-188
    #[test]
    fn control_characters_are_escaped_and_text_is_not() {
        assert_eq!(printable("Grüße\n日本".as_bytes()), "Grüße\n日本");
        assert_eq!(printable(b"\x1b]0;title\x07\r\x1b[2J"), "\\u{1b}]0;title\\u{7}\\r\\u{1b}[2J");
        assert_eq!(printable("a\u{9b}b\u{202e}c".as_bytes()), "a\\u{9b}b\\u{202e}c");
        assert_eq!(printable(b"\xff\x00"), "\u{fffd}\\u{0}");
    }
}
