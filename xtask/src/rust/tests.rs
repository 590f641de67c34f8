use super::RustFile;
use super::mask::Mask;

#[test]
fn mask_keeps_positions_and_separates_code_from_comments() {
    let text = "let é = \"a//b\\\"c\"; // ü \"x\"\n/* a /* b */ c */ let c = 'x';\nlet l: &'a str = r##\"\"# }\"##;\n";
    let mask = Mask::new(text);
    assert_eq!((mask.code.len(), mask.comments.len()), (text.len(), text.len()));
    let code: Vec<&str> = mask.code.lines().map(str::trim_end).collect();
    assert_eq!(code[0].split_whitespace().collect::<Vec<_>>(), ["let", "é", "=", "\"", "\"", "\";"]);
    assert_eq!(code[1].trim(), "let c = ' ';");
    assert!(code[2].starts_with("let l: &'a str =") && !code[2].contains('}'), "{}", code[2]);
    assert!(mask.comments.contains("// ü \"x\""));
    assert!(mask.comments.contains("/* a /* b */ c */"));
    assert!(!mask.comments.contains("a//b"));
}

#[test]
fn truncated_text_is_accepted() {
    for text in ["\"abc", "/* abc", "r#\"abc", "'\\", "fn f(", "#[cfg(", "fn f() {", "b'", "r#"] {
        let file = RustFile::new("crates/a/src/lib.rs", text);
        assert_eq!(file.mask.code.len(), text.len());
    }
}

#[test]
fn raw_identifiers_and_byte_characters_are_not_strings() {
    let code = Mask::new("r#fn(b'\"', c, br\"{\", var\"{\")").code;
    assert!(code.starts_with("r#fn(b'\"', c, "), "{code}");
    assert!(!code.contains('{'), "{code}");
}

#[test]
fn functions_are_found_with_their_lines() {
    let text = "type F = fn(u8) -> u8;\ntrait T {\n    fn declared(&self) -> [u8; 2];\n    fn given(&self) -> [u8; 2] {\n        [0; 2]\n    }\n}\n";
    let file = RustFile::new("crates/a/src/lib.rs", text);
    let found: Vec<(&str, usize)> =
        file.functions.iter().map(|f| (f.name.as_str(), file.line(f.span.start))).collect();
    assert_eq!(found, [("given", 4)]);
    assert_eq!(file.line(file.functions[0].span.end - 1), 6);
}

#[test]
fn modules_are_found_where_they_are_declared() {
    let file = RustFile::new(
        "crates/a/src/x.rs",
        "pub mod one;\nmod two ;\nmod inline { mod three; }\n// mod no;\n",
    );
    let names: Vec<&str> = file.declared_modules().into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["one", "two", "three"]);
    assert_eq!(file.module_folder(), "crates/a/src/x");
}
