use crate::tree::Tree;

use super::check;

const HEAD: &str = "| crate | floor | may depend on | what |\n|---|---|---|---|\n";

/// Returns the messages for a table without header, and crates given as (name, dependencies).
fn messages(rows: &str, crates: &[(&str, &str)]) -> Vec<String> {
    let page = format!("{HEAD}{rows}\nOutside crates on floors 0 to 2: `bytes`.\n");
    let mut files = vec![("ARCHITECTURE.md".to_owned(), page)];
    for (name, dependencies) in crates {
        let manifest = format!("[package]\nname = \"{name}\"\n{dependencies}");
        files.push((format!("crates/{name}/Cargo.toml"), manifest));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    check(&Tree::of(&files)).unwrap().iter().map(ToString::to_string).collect()
}

fn assert_one(messages: &[String], part: &str) {
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains(part), "{messages:?}");
}

const TWO: &str = "| `low` | 0 | – | values |\n| `high` | 3 | `low` | adapter |\n";

#[test]
fn allowed_dependencies_pass() {
    let high = "[dependencies]\nlow.workspace = true\ntokio = \"1\"";
    assert_eq!(messages(TWO, &[("low", "[dependencies]\nbytes = \"1\""), ("high", high)]), [""; 0]);
}

#[test]
fn dependency_outside_the_table_is_reported_with_its_line() {
    let found = messages(TWO, &[("low", "[dependencies]\nhigh = { path = \"x\" }"), ("high", "")]);
    assert_one(&found, "crates/low/Cargo.toml:4: low -> high: the table does not allow");
}

#[test]
fn renamed_build_and_target_dependencies_are_checked() {
    let rows = "| `a` | 1 | – |\n| `b` | 1 | – |\n";
    let hidden = [
        "[dependencies]\nx = { package = \"b\" }",
        "[build-dependencies]\nb = \"1\"",
        "[target.'cfg(unix)'.dependencies]\nb = \"1\"",
        "[dependencies.b]\nversion = \"1\"",
    ];
    for dependency in hidden {
        assert_one(&messages(rows, &[("a", dependency), ("b", "")]), "a -> b");
    }
}

#[test]
fn dev_dependencies_may_point_down_sideways_or_to_proof_but_not_up() {
    let rows = "| `low` | 0 | – |\n| `high` | 3 | – |\n| `proof` | proof | any |\n";
    let dev = |name| format!("[dev-dependencies]\n{name} = \"1\"");
    assert_eq!(messages(rows, &[("low", &dev("proof")), ("high", &dev("low")), ("proof", "")]), [""; 0]);
    let rows_aside = "| `client` | 2 | – |\n| `server` | 2 | – |\n";
    assert_eq!(messages(rows_aside, &[("client", &dev("server")), ("server", "")]), [""; 0]);
    assert_one(&messages(rows, &[("low", &dev("high")), ("high", ""), ("proof", "")]), "low -> high");
}

#[test]
fn shipped_crates_never_depend_on_proof() {
    let rows = "| `low` | 0 | – |\n| `proof` | proof | any |\n";
    let found = messages(rows, &[("low", "[dependencies]\nproof = \"1\""), ("proof", "")]);
    assert_one(&found, "proof is never shipped");
}

#[test]
fn pure_floors_allow_only_listed_external_crates() {
    let found = messages(TWO, &[("low", "[dependencies]\ntokio = \"1\""), ("high", "")]);
    assert_one(&found, "low -> tokio: floor 0 does no I/O");
}

#[test]
fn upward_dependency_in_the_table_is_reported() {
    let rows = "| `low` | 0 | `high` |\n| `high` | 3 | – |\n";
    assert_one(&messages(rows, &[("low", ""), ("high", "")]), "points up");
}

#[test]
fn cycle_on_one_floor_is_reported_for_each_of_its_crates() {
    let rows = "| `a` | 3 | `b` |\n| `b` | 3 | `a` |\n";
    let found = messages(rows, &[("a", ""), ("b", "")]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|message| message.contains("depends on itself")), "{found:?}");
}

#[test]
fn crate_without_row_and_row_without_crate_are_reported() {
    assert_one(&messages(TWO, &[("low", "")]), "high has a row but no crate");
    assert_one(&messages(TWO, &[("low", ""), ("high", ""), ("new", "")]), "crate new has no row");
}

#[test]
fn dependency_on_an_unknown_row_is_reported() {
    assert_one(&messages("| `a` | 3 | `gone` |\n", &[("a", "")]), "gone, which has no row");
}

#[test]
fn page_without_table_is_an_error() {
    assert!(check(&Tree::of(&[("ARCHITECTURE.md", "no table")])).is_err());
    assert!(check(&Tree::of(&[])).is_err());
}
