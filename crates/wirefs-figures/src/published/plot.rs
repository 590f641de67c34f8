//! A line plot over file sizes, as SVG.

/// The size of the plot and its margins, in pixels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 48.0;
/// The number of horizontal grid lines.
const STEPS: u32 = 4;
/// One color per line; they also differ in brightness.
const COLORS: [&str; 6] = ["#1b6ca8", "#d1495b", "#3c8d5a", "#e09f3e", "#6b4c9a", "#444444"];

/// One line of a plot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlotLine {
    /// The label.
    pub(super) name: String,
    /// The points, in data coordinates.
    pub(super) points: Vec<(f64, f64)>,
}

/// A plot with a title, an axis label and lines.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SizePlot {
    /// The text above the plot.
    pub(super) title: String,
    /// The text below the horizontal axis.
    pub(super) across: &'static str,
    /// The lines.
    pub(super) lines: Vec<PlotLine>,
}

impl SizePlot {
    /// Renders the plot as an SVG document.
    pub(super) fn to_svg(&self) -> String {
        let all = || self.lines.iter().flat_map(|line| line.points.iter());
        let across = scale_end(all().map(|(x, _)| *x).fold(0.0, f64::max));
        let up = scale_end(all().map(|(_, y)| *y).fold(0.0, f64::max));
        let place = |(x, y): (f64, f64)| {
            (LEFT + x / across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y / up * (HEIGHT - TOP - BOTTOM))
        };
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        out.push_str(&text(LEFT, TOP - 16.0, "start", &self.title));
        for step in 0..=STEPS {
            let part = f64::from(step) / f64::from(STEPS);
            let ((left, y), (right, _)) = (place((0.0, up * part)), place((across, up * part)));
            out.push_str(&format!(
                "<line x1=\"{left:.1}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>\n"
            ));
            out.push_str(&text(left - 6.0, y + 4.0, "end", &number(up * part)));
            let (x, bottom) = place((across * part, 0.0));
            out.push_str(&text(x, bottom + 18.0, "middle", &number(across * part)));
        }
        let (middle, bottom) = place((across / 2.0, 0.0));
        out.push_str(&text(middle, bottom + 38.0, "middle", self.across));
        for (nth, (line, color)) in self.lines.iter().zip(COLORS.iter().cycle()).enumerate() {
            let points: Vec<(f64, f64)> = line.points.iter().map(|point| place(*point)).collect();
            let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            out.push_str(&format!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\n",
                path.join(" ")
            ));
            for (x, y) in points {
                out.push_str(&format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>\n"));
            }
            let (x, y) = (WIDTH - RIGHT + 16.0, TOP + 18.0 * nth as f64);
            out.push_str(&format!(
                "<rect x=\"{x}\" y=\"{:.1}\" width=\"12\" height=\"4\" fill=\"{color}\"/>\n",
                y - 5.0
            ));
            out.push_str(&text(x + 18.0, y, "start", &line.name));
        }
        out.push_str("</svg>\n");
        out
    }
}

fn text(x: f64, y: f64, anchor: &str, words: &str) -> String {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#222222\">{words}</text>\n")
}

fn number(value: f64) -> String {
    if value >= 10.0 || value == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// Returns the end of a scale that includes `most`: 1, 2, 4, 8 or 10 times a power of ten.
fn scale_end(most: f64) -> f64 {
    let most = most.max(1e-6);
    let ten = 10_f64.powf(most.log10().floor());
    let fits = [1.0, 2.0, 4.0, 8.0, 10.0].into_iter().find(|factor| factor * ten >= most);
    fits.unwrap_or(10.0) * ten
}

#[cfg(test)]
mod tests;
