use super::*;

#[test]
fn text_is_quoted_as_json() {
    assert_eq!(quoted("a \"b\" \\ \n"), r#""a \"b\" \\ \u000a""#);
}

#[test]
fn line_is_a_command_with_options() {
    let parse = |line: &str| ControlLine::try_parse_from(line.split_whitespace());
    assert!(matches!(parse("cut"), Ok(ControlLine::Cut)));
    assert!(
        matches!(parse("set --rtt 10 --loss 2%"), Ok(ControlLine::Set(options)) if options.loss.is_some())
    );
    assert!(parse("sever").is_err() && parse("").is_err());
}
