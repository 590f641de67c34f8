//! Tests that would not run: ignored, not compiled, or in separate binaries.

use crate::finding::Finding;
use crate::rust::RustFile;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let targets = make_targets(tree);
    let mut findings = Vec::new();
    for file in &tree.rust {
        findings.extend(ignored(file, &targets));
        findings.extend(own_binary(file));
        findings.extend(orphan(tree, file));
    }
    findings
}

fn make_targets(tree: &Tree) -> Vec<String> {
    let makefile = tree.file("Makefile").map_or("", |file| file.text.as_str());
    let rules = makefile.lines().filter(|line| !line.starts_with(['\t', '#', ' ']));
    let names = rules.filter_map(|line| line.split_once(':')).flat_map(|(names, _)| names.split_whitespace());
    names.map(String::from).collect()
}

fn ignored(file: &RustFile, targets: &[String]) -> Vec<Finding> {
    let attributes = file.attributes.iter().filter(|attribute| attribute.name() == "ignore");
    let names_target = |content: &str| {
        let after = content.split_once("make ").map_or("", |(_, after)| after);
        targets
            .iter()
            .any(|target| after.split(|c: char| !c.is_alphanumeric() && c != '-').next() == Some(target))
    };
    let bad = attributes.filter(|attribute| !names_target(&attribute.content));
    bad.map(|attribute| {
        let message = "#[ignore] without a reason that names the make target which runs it";
        let fix = "#[ignore = \"needs X; run by `make Y`\"], Y being in the Makefile; better, let it run";
        Finding::error(&file.path, file.line(attribute.span.start), message, fix)
    })
    .collect()
}

/// Requires one integration test binary per crate: `tests/suite/main.rs`.
fn own_binary(file: &RustFile) -> Option<Finding> {
    let (owner, inside) = file.path.split_once("/tests/")?;
    let is_crate_root = owner.split('/').count() <= 2 && !owner.contains("/src");
    (is_crate_root && !inside.starts_with("suite/")).then(|| {
        let message = "an integration test binary of its own";
        Finding::error(&file.path, 1, message, "make it a module of tests/suite/main.rs")
    })
}

/// Finds files without a `mod` line, which are never compiled.
fn orphan(tree: &Tree, file: &RustFile) -> Option<Finding> {
    let (folder, _) = file.path.rsplit_once('/')?;
    let is_root = matches!(file.name(), "lib" | "main" | "build") || folder.ends_with("/bin");
    let is_module = file.path.contains("/src/") || file.path.contains("/tests/suite/");
    if is_root || !is_module {
        return None;
    }
    let declares = |parent: &&RustFile| {
        parent.module_folder() == folder
            && parent.declared_modules().iter().any(|&(_, name)| name == file.name())
    };
    let parent = tree.rust.iter().find(declares);
    parent.is_none().then(|| {
        let message = "no mod line names this file, so it is never compiled";
        Finding::error(&file.path, 1, message, "declare it in its parent, or remove it")
    })
}
