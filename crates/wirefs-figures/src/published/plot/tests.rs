use super::*;

#[test]
fn plot_has_all_lines_labels_and_a_scale_that_includes_all_points() {
    let lines =
        |name: &str, most: f64| PlotLine { name: name.to_owned(), points: vec![(1.0, 3.0), (15.0, most)] };
    let plot = SizePlot {
        title: "Writing & closing".to_owned(),
        across: "MiB",
        lines: vec![lines("one", 70.0), lines("two", 12.0)],
    };
    let svg = plot.to_svg();
    assert_eq!((svg.matches("<polyline").count(), svg.matches("<circle").count()), (2, 4), "{svg}");
    for words in [">one<", ">two<", ">MiB<", ">Writing &amp; closing<", ">80<", ">20<", ">0<"] {
        assert!(svg.contains(words), "{words} is not in:\n{svg}");
    }
}

#[test]
fn scales_end_at_round_numbers() {
    for (most, end) in [(15.0, 20.0), (70.0, 80.0), (0.3, 0.4), (1000.0, 1000.0), (9.0, 10.0)] {
        assert!((scale_end(most) - end).abs() < 1e-9, "{most}: {}", scale_end(most));
    }
}
