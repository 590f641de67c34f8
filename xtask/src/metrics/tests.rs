use crate::tree::Tree;

use super::table;

fn row<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find(|line| line.contains(name)).unwrap()
}

#[test]
fn table_has_the_statistics_of_the_files() {
    let long = format!(
        "/// Doc.\n#[expect(\n    unused\n)]\npub fn long() {{\n{}}}\npub struct Bare;\n",
        "    f();\n".repeat(80)
    );
    let short = "fn f() { x.unwrap(); }\n#[cfg(test)]\nmod tests { fn g() { x.unwrap(); } }\n";
    let text = table(&Tree::of(&[("crates/a/src/long.rs", &long), ("crates/a/src/short.rs", short)]));
    assert!(row(&text, "files").contains("| 2, 90 |"), "{text}");
    assert!(row(&text, "median").contains("| 3 |"), "{text}");
    assert!(row(&text, "P90").contains("| 87 / 87 |"), "{text}");
    assert!(row(&text, "functions over").contains("| 1 of 3 (33.3 %) |"), "{text}");
    assert!(row(&text, "unwrap").contains("| 11.3 |"), "{text}");
    assert!(row(&text, "documented").contains("| 1 of 2 (50.0 %) |"), "{text}");
}

#[test]
fn empty_tree_has_statistics() {
    assert!(table(&Tree::of(&[])).contains("| median lines per file | 0 |"));
}
