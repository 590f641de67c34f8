use crate::tree::Tree;

use super::check;

fn messages(files: &[(&str, &str)]) -> Vec<String> {
    check(&Tree::of(files)).iter().map(ToString::to_string).collect()
}

/// Asserts that there is exactly one finding, which contains `part`.
#[track_caller]
fn assert_one(files: &[(&str, &str)], part: &str) {
    let found = messages(files);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains(part), "{found:?}");
}

#[track_caller]
fn assert_none(files: &[(&str, &str)]) {
    assert_eq!(messages(files), [""; 0]);
}

const LIB: &str = "crates/a/src/lib.rs";

#[test]
fn long_files_are_found() {
    let main = "crates/a/src/main.rs";
    assert_one(&[(main, &"\n".repeat(451))], "warning: 451 lines");
    assert_one(&[(main, &"\n".repeat(801))], "main.rs:1: 801 lines; a file has at most 800");
    assert_one(&[(LIB, &"\n".repeat(101))], "lib.rs has at most 100");
}

#[test]
fn long_function_is_found_with_braces_in_strings_and_comments() {
    let body = "    f(\"}\", '}', b'{', r#\"\"}\"#); // }\n".repeat(69);
    assert_one(
        &[("crates/a/src/main.rs", &format!("\nfn f<'a>() {{\n{body}}}\n"))],
        "main.rs:2: fn f has 71 lines",
    );
    let fits = format!("fn f() {{\n{}}}\nfn g() {{\n}}\n", "    x;\n".repeat(68));
    assert_none(&[("crates/a/src/main.rs", &fits)]);
}

#[test]
fn long_function_is_excused_only_for_one_match_or_table_with_a_reason() {
    let file = "crates/a/src/main.rs";
    let arms = "        1 => 2,\n".repeat(80);
    let long_match = format!("fn f() {{\n    match x {{\n{arms}    }}\n}}\n");
    assert_one(&[(file, &long_match)], "fn f has 84 lines");
    assert_none(&[(file, &format!("// tidy: long because it is the table of errors\n{long_match}"))]);
    assert_one(&[(file, &format!("// tidy: long because \n{long_match}"))], "fn f has 84 lines");
    let plain = format!("// tidy: long because I like it\nfn f() {{\n{}}}\n", "    x;\n".repeat(80));
    assert_one(&[(file, &plain)], "is not one match or table");
}

#[test]
fn banned_names_are_found() {
    assert_one(&[(LIB, "mod util;"), ("crates/a/src/util.rs", "")], "banned name \"util\"");
    assert_one(
        &[(LIB, "mod x;"), ("crates/a/src/x.rs", "mod y;"), ("crates/a/src/x/y.rs", "mod common {\n}")],
        "common",
    );
    let old = [(LIB, "mod x;"), ("crates/a/src/x/mod.rs", "")];
    assert!(messages(&old).iter().any(|message| message.contains("mod.rs is not used")));
}

#[test]
fn panics_outside_tests_are_found() {
    assert_one(&[(LIB, "fn f() {\n    x.unwrap();\n}")], "lib.rs:2: .unwrap() outside tests");
    assert_one(&[(LIB, "fn f() {\n    x.expect(\"y\");\n}")], "lib.rs:2: .expect( outside tests");
    assert_none(&[(LIB, "#[cfg(test)]\nmod inside {\n    fn f() { x.unwrap(); }\n}\n// x.unwrap()")]);
    assert_none(&[(LIB, "#[cfg(test)]\nmod tests;"), ("crates/a/src/tests.rs", "fn f() { x.unwrap(); }")]);
    assert_none(&[(LIB, "#[cfg(test)]\nmod pair;"), ("crates/a/src/pair.rs", "fn f() { x.unwrap(); }")]);
    assert_one(&[(LIB, "#[cfg(not(test))]\nfn f() { x.unwrap(); }")], ".unwrap()");
}

#[test]
fn expected_panics_need_a_reason_and_cover_one_item() {
    let covered = "#[expect(clippy::unwrap_used, reason = \"never empty\")]\nfn f() { x.unwrap(); }\n";
    assert_none(&[(LIB, covered)]);
    assert_one(&[(LIB, &format!("{covered}fn g() {{ y.unwrap(); }}"))], "lib.rs:3: .unwrap()");
    let statement =
        "fn f() {\n#[expect(clippy::expect_used, reason = \"r\")]\nlet x = y(a, b).expect(\"z\");\n}";
    assert_none(&[(LIB, statement)]);
    assert_one(&[(LIB, "#[expect(unused)]\nfn f() {}")], "gives no reason");
    assert_one(&[(LIB, "#[allow(unused, reason = \"r\")]\nfn f() {}")], "gives no reason");
}

#[test]
fn unfinished_code_is_found() {
    assert_one(&[(LIB, "fn f() { todo!() }")], "todo!");
    assert_one(&[(LIB, "fn f() { unimplemented!() }")], "unimplemented!");
    assert_none(&[(LIB, "//! No todo! in here.\nfn todo() {}")]);
}

#[test]
fn ignored_tests_must_name_a_make_target() {
    let main = "crates/a/tests/suite/main.rs";
    let makefile = ("Makefile", ".PHONY: slow\nslow:\n\tcargo test\n");
    assert_one(&[(main, "#[ignore]\nfn f() {}"), makefile], "main.rs:1: #[ignore]");
    assert_one(&[(main, "#[ignore = \"run by `make gone`\"]\nfn f() {}"), makefile], "#[ignore]");
    assert_none(&[(main, "#[ignore = \"run by `make slow`\"]\nfn f() {}"), makefile]);
}

#[test]
fn tests_that_would_not_run_are_found() {
    assert_one(&[("crates/a/tests/smoke.rs", "")], "binary of its own");
    let suite = "crates/a/tests/suite/main.rs";
    assert_one(&[(suite, ""), ("crates/a/tests/suite/rename.rs", "")], "suite/rename.rs:1: no mod line");
    assert_none(&[(suite, "mod rename;"), ("crates/a/tests/suite/rename.rs", "")]);
    assert_one(
        &[(LIB, "mod a;"), ("crates/a/src/a.rs", ""), ("crates/a/src/a/tests.rs", "")],
        "a/tests.rs:1: no mod line",
    );
}

#[test]
fn long_pages_and_heavy_files_are_found() {
    assert_one(&[("README.md", &"\n".repeat(151))], "README.md:151: 151 lines of at most 150");
    assert_one(&[("ARCHITECTURE.md", &"\n".repeat(301))], "at most 300");
    assert_one(&[("Makefile", &"\n".repeat(41))], "at most 40");
    assert_one(&[("docs/big.bin", &"x".repeat(1024 * 1024 + 1))], "docs/big.bin:1: 1048577 bytes");
}

#[test]
fn guarantees_and_citations_must_match() {
    let page = ("docs/SEMANTICS.md", "# Semantics\n\n**S-7** A rename is atomic.\n");
    let suite = "crates/a/tests/suite/main.rs";
    assert_one(&[page], "docs/SEMANTICS.md:3: S-7 is cited by no test");
    assert_one(&[page, (LIB, "//! S-7")], "S-7 is cited by no test");
    assert_none(&[page, (suite, "/// S-7\nfn f() {}")]);
    assert_one(&[page, (suite, "// S-7\n// S-70")], "main.rs:2: S-70 is not in docs/SEMANTICS.md");
    assert_none(&[(LIB, "//! TLS-12 and XS-1 are no ids.")]);
}

#[test]
fn unsafe_is_found_outside_sys_and_without_safety_comment() {
    assert_one(&[(LIB, "fn f() { unsafe { g() } }")], "unsafe outside sys.rs");
    let sys = "crates/a/src/sys.rs";
    assert_one(&[(LIB, "mod sys;"), (sys, "fn f() { unsafe { g() } }")], "without a SAFETY: comment");
    assert_none(&[(LIB, "mod sys;"), (sys, "// SAFETY: g has no precondition.\nfn f() { unsafe { g() } }")]);
    assert_none(&[(LIB, "#![deny(unsafe_code)]\n// unsafe\nfn f() { g(\"unsafe\") }")]);
}

#[test]
fn io_clocks_and_randomness_are_reported_on_pure_floors() {
    let page = (
        "ARCHITECTURE.md",
        "| crate | floor | may depend on |\n|--|--|--|\n| `a` | 2 | – |\n| `b` | 3 | – |\n",
    );
    for line in
        ["use std::fs;", "use std::time::Instant;", "use std::collections::HashMap;", "async fn f() {}"]
    {
        assert_one(&[page, (LIB, line)], "on a floor without I/O");
        assert_none(&[page, ("crates/b/src/lib.rs", line)]);
    }
    assert_none(&[page, (LIB, "use std::time::Duration;\n#[cfg(test)]\nmod x { use std::fs; }")]);
}

#[test]
fn paths_of_one_machine_are_found() {
    let path = ["/work", "/main"].concat();
    assert_one(&[("docs/a.md", &format!("see\n{path}/x"))], "docs/a.md:2: path");
    assert_none(&[("docs/a.md", &format!("mnt{path} and ..{path}"))]);
    assert_one(&[(".ci/run", &["/root/.ca", "rgo/bin"].concat())], ".ci/run:1: path");
}
