use super::*;

#[test]
fn text_is_quoted_as_json_wants_it() {
    assert_eq!(quoted("a \"b\" \\ \n"), r#""a \"b\" \\ \u000a""#);
}

#[test]
fn a_line_is_a_verb_and_what_it_changes() {
    let parse = |line: &str| Line::try_parse_from(line.split_whitespace());
    assert!(matches!(parse("cut"), Ok(Line::Cut)));
    assert!(matches!(parse("set --rtt 10 --loss 2%"), Ok(Line::Set(options)) if options.loss.is_some()));
    assert!(parse("sever").is_err() && parse("").is_err());
}
