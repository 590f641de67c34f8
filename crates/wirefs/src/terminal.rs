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

pub(crate) use note;
pub(crate) use say;
