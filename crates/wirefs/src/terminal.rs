//! Output lines. A closed reader, as after `| head`, or a full disk under a log, ends no server and no mount.

use wirefs_carrier::is_hidden;

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

/// Returns JSON with text of strangers as it can be shown. The line ends of JSON itself stay.
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

pub(crate) use note;
pub(crate) use say;
