use super::*;
use crate::Histogram;
use std::time::Duration;

#[test]
fn text_has_the_form_of_openmetrics() {
    let histogram = Histogram::default();
    histogram.add(Duration::from_nanos(1000));
    histogram.add(Duration::from_secs(100));
    let mut text = Exposition::default();
    text.counters("wirefs_bytes", Unit::Bytes, "A \"help\" with\\escapes\nand lines.");
    text.counter(&[("mount", "/a \"b\"\n\\"), ("direction", "in")], 5.0);
    text.gauges("wirefs_calls_waiting", Unit::None, "Calls without an answer.");
    text.gauge(&[], 2.0);
    text.histograms("wirefs_call_seconds", "The time of calls.");
    text.histogram(&[("operation", "read")], &histogram.counts());
    let text = text.finish();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..9],
        [
            "# TYPE wirefs_bytes counter",
            "# UNIT wirefs_bytes bytes",
            r#"# HELP wirefs_bytes A \"help\" with\\escapes\nand lines."#,
            r#"wirefs_bytes_total{mount="/a \"b\"\n\\",direction="in"} 5"#,
            "# TYPE wirefs_calls_waiting gauge",
            "# HELP wirefs_calls_waiting Calls without an answer.",
            "wirefs_calls_waiting 2",
            "# TYPE wirefs_call_seconds histogram",
            "# UNIT wirefs_call_seconds seconds",
        ]
    );
    assert_eq!(lines[10], r#"wirefs_call_seconds_bucket{operation="read",le="0.000001024"} 1"#);
    let end = lines.len() - 4;
    assert_eq!(
        lines[end..],
        [
            r#"wirefs_call_seconds_bucket{operation="read",le="+Inf"} 2"#,
            r#"wirefs_call_seconds_count{operation="read"} 2"#,
            r#"wirefs_call_seconds_sum{operation="read"} 100.000001"#,
            "# EOF",
        ]
    );
}
