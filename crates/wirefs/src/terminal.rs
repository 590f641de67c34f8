//! Output lines. A closed reader, as after `| head`, or a full disk under a log, ends no server and no mount.

/// A line on standard output.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _unheard = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// A line on standard error; in a log file with the time.
macro_rules! note {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _unheard =
            writeln!(std::io::stderr(), "{}{}", wirefs_mount::log::time(), format_args!($($text)*));
    }};
}

/// Returns text of a stranger as it can be shown: characters that move the cursor, hide or reorder text are escaped.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::new();
    for letter in text.chars() {
        match is_hidden(letter) {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    shown
}

/// The same in JSON, whose own line ends stay.
pub(crate) fn shown_json(json: &str) -> String {
    let mut shown = String::new();
    for letter in json.chars() {
        match is_hidden(letter) && letter != '\n' {
            true => shown.push_str(&format!("\\u{:04x}", u32::from(letter))),
            false => shown.push(letter),
        }
    }
    shown
}

/// Returns whether a character moves the cursor, hides or reorders text. All of them have four hexadecimal digits.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

pub(crate) use note;
pub(crate) use say;
