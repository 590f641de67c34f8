use crate::finding::Finding;
use crate::tree::Tree;

use super::check;

const LIB: &str = "crates/a/src/lib.rs";

fn messages(files: &[(&str, &str)]) -> Vec<String> {
    check(&Tree::of(files)).iter().map(Finding::to_string).collect()
}

/// Each of these texts has one place that a rule finds, and says `part` of it.
#[track_caller]
fn assert_found(path: &str, text: &str, part: &str) {
    let found = messages(&[(path, text)]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().any(|message| message.contains(part)), "{found:?}");
}

#[track_caller]
fn assert_none(path: &str, text: &str) {
    assert_eq!(messages(&[(path, text)]), [""; 0]);
}

#[test]
fn limits_allow_so_many_places_and_must_fall_with_them() {
    let code = "fn pen_moves() {}\nstruct LastLetter;\n";
    let limits = |number: usize| format!("[banned-names]\nat_most = {number}\nreason = \"r\"\n");
    assert_eq!(messages(&[(LIB, code), ("xtask/ratchets.toml", &limits(2))]), [""; 0]);
    let exceeded = messages(&[(LIB, code), ("xtask/ratchets.toml", &limits(1))]);
    assert!(exceeded.iter().any(|message| message.contains("2 places, 1 are allowed")), "{exceeded:?}");
    let fallen = messages(&[(LIB, code), ("xtask/ratchets.toml", &limits(3))]);
    assert_eq!(fallen.len(), 1, "{fallen:?}");
    assert!(fallen[0].contains("set at_most = 2"), "{fallen:?}");
}

#[test]
fn limits_above_zero_need_a_reason() {
    let limits = "[banned-names]\nat_most = 1\n";
    let found = messages(&[(LIB, "fn pen_moves() {}\n"), ("xtask/ratchets.toml", limits)]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("a limit above 0 has no reason"), "{found:?}");
}

/// A client of three files in two rooms, the lower one with this text.
fn rooms(lower: &str) -> Vec<String> {
    let page = "| room, from the top down | files |\n|---|---|\n| top | `machine.rs` |\n| bottom | `core.rs`, `view/` |\n";
    messages(&[
        ("ARCHITECTURE.md", page),
        ("crates/wirefs-client/src/core.rs", "pub struct Client;\nimpl Client { fn poll(&self) {} }"),
        (
            "crates/wirefs-client/src/machine.rs",
            "use crate::{core::Client, view::names};\nimpl Client { fn call(&self) {} }\nimpl Sender<'_> { fn ask(&self) {} }",
        ),
        ("crates/wirefs-client/src/view/names.rs", lower),
    ])
}

#[test]
fn arrows_of_the_client_that_run_up_are_found() {
    assert_eq!(rooms("use crate::core::Client;\nfn f(client: &Client) { client.poll() }"), [""; 0]);
    for lower in [
        "fn f(client: &Client) { client.call() }",
        "fn f(client: &Client) { client.sender().ask() }",
        "use crate::machine::{self};",
    ] {
        let found = rooms(lower);
        assert!(found.iter().any(|message| message.contains("names.rs:1: needs machine.rs")), "{found:?}");
        let in_circle = found.iter().filter(|message| message.contains("in the largest circle"));
        assert_eq!(in_circle.count(), 2, "{found:?}");
    }
}

#[test]
fn functions_that_get_the_whole_client_are_found() {
    let found = rooms("fn f(client: &mut Client) {}\nfn g(view: &mut View) {}");
    assert!(found.iter().any(|message| message.contains("f gets the whole client")), "{found:?}");
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn banned_words_are_found_as_parts_of_names() {
    assert_found(LIB, "fn take_pen() {}", "take_pen has \"pen\" in it");
    assert_found(LIB, "enum PenState {}", "PenState has \"pen\"");
    assert_found("crates/a/src/laps.rs", "", "file name with \"laps\"");
    assert_none(LIB, "fn open() {}\nstruct Pending;\nfn elapsed() {}\n// pen\nfn f() { let pen = 1; }");
}

#[test]
fn openings_without_a_noun_are_found_at_each_sentence() {
    assert_found(LIB, "/// What is known.\nfn f() {}", "begins with \"What\"");
    assert_found(LIB, "/// The cache. Whoever asks\n/// waits.\nfn f() {}", "begins with \"Whoever\"");
    assert_found(LIB, "//! - Who asks.", "begins with \"Who\"");
    assert_found(LIB, "/// It.\nfn f() {}", "begins with \"It\"");
    assert_none(
        LIB,
        "/// Returns\n/// What the name says. It is cached.\nfn f() {}\n// What a comment says.",
    );
}

#[test]
fn long_sentences_are_found_outside_code() {
    let long = "w ".repeat(31);
    assert_found("docs/a.md", &format!("Short. {long}end.\n"), "32 words");
    assert_found("docs/a.md", &format!("| a | {long} |\n"), "31 words");
    assert_found("docs/a.md", &format!("{}\n{}\n", "w ".repeat(20), "w ".repeat(20)), "40 words");
    let fits = "w ".repeat(30);
    assert_none("docs/a.md", &format!("```\n{long}\n```\n- {fits}\n- {fits}\n\n# {fits}\n{fits}\n"));
}

#[test]
fn wide_lines_are_found_outside_tables_and_code() {
    let wide = "x".repeat(121);
    assert_found("docs/a.md", &wide, "121 columns");
    assert_none("docs/a.md", &format!("| {wide} |\n```\n{wide}\n```\n{}\n", "ä".repeat(120)));
}

#[test]
fn wide_structs_are_found() {
    let fields =
        |number: usize| -> String { (0..number).map(|field| format!("f{field}: a::B<c::D, E>, ")).collect() };
    assert_found(LIB, &format!("struct A {{ {} }}", fields(13)), "struct A has 13 fields");
    assert_none(LIB, &format!("struct A {{ {} }}\nstruct B(u8);\nfn f() {{ g::<u8>(a::b) }}", fields(12)));
}

#[test]
fn public_types_of_one_name_are_found() {
    let files = [(LIB, "pub struct State;"), ("crates/b/src/lib.rs", "pub enum State {}")];
    let found = messages(&files);
    assert!(
        found.iter().any(|message| message.contains("crates/b/src/lib.rs:1: State is also")),
        "{found:?}"
    );
    assert_none(LIB, "pub struct State;\nmod a {\n    struct State;\n    pub(crate) struct State;\n}");
}
