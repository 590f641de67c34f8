use super::fit::{cut, end_of, width, wrapped};
use super::*;

const COLUMNS: usize = 80;

/// The columns of a text whose wide characters are ideographs only.
fn columns(line: &str) -> usize {
    line.chars().map(|character| if ('一'..='鿿').contains(&character) { 2 } else { 1 }).sum()
}

fn waits(path: &str) -> Wait {
    Wait {
        process: 4_194_304,
        program: "kworker/u64:12-x".into(),
        operation: "copy_file_range".into(),
        path: path.into(),
        waited_us: 123_456_789,
        ended_ago_us: Some(59_900_000),
        causes_us: BTreeMap::from([("server_disk".into(), 123_456_789)]),
        ..Wait::default()
    }
}

// S-162
#[test]
fn wait_fits_the_terminal_and_keeps_its_cause_and_the_end_of_its_path() {
    let cause = in_words("server_disk");
    let long = format!("{}/report.pdf", "directory/".repeat(20));
    for path in ["", "a", &long, &"一二三/".repeat(30), &format!("{}\n\x1b[2J", "x".repeat(90))] {
        let line = wait(&waits(path), COLUMNS);
        assert!(line.ends_with(cause), "{line}");
        assert!(!line.contains(|character: char| character.is_control()), "{line:?}");
        // What does not fit beside a short path is cut in the end.
        assert!(columns(&cut(&line, COLUMNS)) <= COLUMNS, "{line}");
    }
    let short = Wait { program: "cat".into(), operation: "read".into(), ..waits(&long) };
    let line = wait(&short, COLUMNS);
    assert!(columns(&line) == COLUMNS && line.contains("/report.pdf: "), "{line}");
}

// S-162
#[test]
fn title_keeps_the_mountpoint() {
    let line = title(&format!("host:{}", "source/".repeat(30)), "/home/user/mnt", COLUMNS);
    assert!(columns(&line) == COLUMNS && line.ends_with("/source/ on /home/user/mnt"), "{line}");
    let line = title("host:dir", &"/mountpoint".repeat(20), COLUMNS);
    assert!(columns(&line) <= COLUMNS && line.starts_with("host:dir on …"), "{line}");
    assert_eq!(title("host:dir", "/mnt", COLUMNS), "host:dir on /mnt");
}

// S-162
#[test]
fn table_fits_the_terminal() {
    let causes = GROUPS.iter().flat_map(|(_, names)| names.iter().map(|name| ((*name).to_owned(), 1)));
    let busy = OperationReport {
        name: "copy_range".into(),
        calls: 123_456_789,
        total_us: 10,
        p50_us: 59_900_000,
        p99_us: 3_599_000_000,
        causes_us: causes.collect(),
    };
    let mut lines = Vec::new();
    operations(&mut lines, &[], &[busy]);
    assert!(lines.iter().all(|line| columns(line) <= COLUMNS), "{lines:#?}");
    assert_eq!(lines[0].find("local"), lines[1].rfind("%").map(|at| at - 4), "{lines:#?}");
}

#[test]
fn parts_that_do_not_fit_begin_a_line() {
    let parts = ["NOT CONNECTED for 12 min", "in 1023 MiB/s, out 1023 MiB/s", "123456 calls/s", "9 waiting"];
    let lines = wrapped(parts.into_iter(), COLUMNS);
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines.iter().all(|line| columns(line) <= COLUMNS && line.starts_with("  ")), "{lines:#?}");
    assert_eq!(lines.join(" · ").replace("   ", " "), format!("  {}", parts.join(" · ")).replace("   ", " "));
}

#[test]
fn wide_characters_take_two_columns() {
    assert_eq!(width("一二a"), 5);
    assert_eq!(cut("一二a", 4), "一二");
    assert_eq!(cut("一二a", 3), "一");
    assert_eq!(end_of("a/一二", 5), "…一二");
    assert_eq!(end_of("a/一二", 4), "…二");
    assert_eq!(end_of("a/一二", 6), "a/一二");
}
