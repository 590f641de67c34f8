use super::*;

const MEASUREMENTS: &str = include_str!("../../../../docs/measurements/workloads.md");
const PICTURE: &str = include_str!("../../../../docs/pictures/distance.svg");
const README: &str = include_str!("../../../../README.md");

#[test]
fn picture_of_the_readme_shows_the_measured_values() {
    assert!(picture(MEASUREMENTS).unwrap() == PICTURE, "run `make pictures`");
}

#[test]
fn table_of_the_readme_has_the_measured_values() {
    let table = table::at(MEASUREMENTS, "RTT 85 ms").unwrap();
    for (work, label) in WORK {
        let row = table.row(work).unwrap();
        let line = README.lines().find(|line| line.replace('`', "").starts_with(&format!("| {label} |")));
        let cells: Vec<&str> =
            line.unwrap_or_else(|| panic!("no row {label}")).split('|').map(str::trim).collect();
        for (cell, (peer, _)) in cells[2..5].iter().zip(PEERS) {
            match row.duration(peer).unwrap() {
                Duration::StoppedAfter { text, .. } => assert_eq!(*cell, format!("over {text}"), "{label}"),
                Duration::Took { seconds, .. } => {
                    let shown: f64 = cell.strip_suffix(" s").unwrap().parse().unwrap();
                    assert!((shown / seconds - 1.0).abs() < 0.07, "{label}: {cell} for {seconds} s");
                }
            }
        }
    }
}

#[test]
fn missing_row_is_an_error() {
    let text = "### RTT 85 ms\n\n| work | local | sshfs | wirefs |\n|---|---|---|---|\n| other | 1 s | 1 s | 1 s |\n";
    assert!(picture(text).is_err());
    assert!(picture("").is_err());
}
