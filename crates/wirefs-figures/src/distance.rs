//! The picture of the README: a few rows of the bench at 85 ms as bars, on a logarithmic axis.

mod table;

use anyhow::{Context, Result};

use table::{Duration, Row};

/// The rows of the picture: how the bench names the work, and how the picture does.
const WORK: [(&str, &str); 6] = [
    ("find -size +1 over 2000 files in 100 directories, cold", "find, first time"),
    ("git status over 2000 files in 100 directories, cold", "git status, first time"),
    ("git status over 2000 files in 100 directories, warm", "git status again"),
    ("tar x of 2000 files in 100 directories", "tar x"),
    ("make of 60 C files, cold", "make of 60 C files"),
    ("writing 256 MiB, then fsync", "write 256 MiB and fsync"),
];
/// The columns of the bench that are drawn, with the class of their bars.
const PEERS: [(&str, &str); 3] = [("sshfs", "sshfs"), ("wirefs", "wirefs"), ("local", "local")];

/// Sizes in pixels.
const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 90.0;
const TOP: f64 = 56.0;
const BAR: f64 = 12.0;
const GROUP: f64 = 3.0 * BAR + 16.0;
/// The ends of the axis: 1 ms and 100 s, as powers of ten of seconds.
const AXIS: (i32, i32) = (-3, 2);

/// Colors for light and dark pages. The three bars differ in brightness, too.
const STYLE: &str = "<style>\
    text{font:13px sans-serif;fill:#1f2328}.note{fill:#59636e;font-size:12px}.grid{stroke:#d1d9e0}\
    .sshfs{fill:#d1495b}.wirefs{fill:#1b6ca8}.local{fill:#9aa4ae}\
    @media(prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9198a1}.grid{stroke:#3d444d}\
    .sshfs{fill:#e5707f}.wirefs{fill:#58a6e0}.local{fill:#656c76}}</style>\n";

/// Draws the picture from the text of `docs/measurements/workloads.md`, as an SVG document.
///
/// # Errors
/// Fails if the text has no table for 85 ms, or the table lacks one of the rows or columns.
pub fn picture(measurements: &str) -> Result<String> {
    let table = table::at(measurements, "RTT 85 ms").context("there is no table for RTT 85 ms")?;
    let height = TOP + GROUP * WORK.len() as f64 + 28.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Time of six jobs over a line with 85 ms round trip\">\n{STYLE}"
    );
    out.push_str(&text(
        0.0,
        18.0,
        "start",
        "",
        "Time over a line with 85 ms round trip; each step of the axis is ten times the one before",
    ));
    for (nth, (peer, class)) in PEERS.iter().enumerate() {
        let x = LEFT + 110.0 * nth as f64;
        out.push_str(&bar(x, 30.0, 12.0, class));
        out.push_str(&text(
            x + 18.0,
            41.0,
            "start",
            "note",
            if *peer == "local" { "local disk" } else { peer },
        ));
    }
    for power in AXIS.0..=AXIS.1 {
        let x = place(10_f64.powi(power));
        let bottom = height - 24.0;
        out.push_str(&format!("<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom:.1}\"/>\n"));
        out.push_str(&text(x, height - 8.0, "middle", "note", tick(power)));
    }
    for (nth, (name, label)) in WORK.iter().enumerate() {
        let row = table.row(name).with_context(|| format!("no row `{name}`"))?;
        let top = TOP + 8.0 + GROUP * nth as f64;
        out.push_str(&text(LEFT - 12.0, top + 1.9 * BAR, "end", "", label));
        out.push_str(&bars(&row, top)?);
    }
    out.push_str("</svg>\n");
    Ok(out)
}

/// Draws the bars of one row.
fn bars(row: &Row<'_>, top: f64) -> Result<String> {
    let mut out = String::new();
    for (nth, (peer, class)) in PEERS.iter().enumerate() {
        let took = row.duration(peer).with_context(|| format!("no duration of {peer}"))?;
        let (y, end) = (top + BAR * nth as f64, place(took.seconds()));
        out.push_str(&bar(LEFT, y, end - LEFT, class));
        let label = match took {
            Duration::Took { text, .. } => text.to_owned(),
            Duration::StoppedAfter { text, .. } => format!("over {text}"),
        };
        out.push_str(&text(end + 5.0, y + BAR - 2.0, "start", "note", &label));
    }
    Ok(out)
}

/// Returns the horizontal position of a duration in seconds.
fn place(seconds: f64) -> f64 {
    let (from, to) = (f64::from(AXIS.0), f64::from(AXIS.1));
    LEFT + ((seconds.log10() - from) / (to - from)).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
}

fn tick(power: i32) -> &'static str {
    match power {
        -3 => "1 ms",
        -2 => "10 ms",
        -1 => "0.1 s",
        0 => "1 s",
        1 => "10 s",
        _ => "100 s",
    }
}

fn bar(x: f64, y: f64, width: f64, class: &str) -> String {
    format!(
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>\n",
        BAR - 2.0
    )
}

fn text(x: f64, y: f64, anchor: &str, class: &str, words: &str) -> String {
    format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>\n")
}

#[cfg(test)]
mod tests;
