use std::path::{Path, PathBuf};

use serde_json::json;

use crate::dist::machine::Machine;
use crate::dist::{bill, deb, notes, version_of};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

#[test]
fn version_is_the_one_of_the_workspace() {
    let manifest = "[workspace.package]\nversion = \"1.2.3\"\n";
    assert_eq!(version_of(manifest).unwrap(), "1.2.3");
    assert!(version_of("[package]\nversion = \"1.2.3\"\n").is_err());
}

#[test]
fn unknown_machine_is_refused() {
    assert!(Machine::named(&["vax".into()]).unwrap_err().to_string().contains("vax"));
    assert_eq!(Machine::named(&[]).unwrap().len(), 2);
    assert_eq!(Machine::named(&["aarch64".into()]).unwrap()[0].debian, "arm64");
}

#[test]
fn notes_are_the_section_of_the_version() {
    let page = "# Changelog\n\n## 0.2.0, 2030\n\nnew\n\n## 0.1.0\n\nold\n";
    assert_eq!(notes::section(page, "0.2.0").unwrap(), "new\n");
    assert_eq!(notes::section(page, "0.1.0").unwrap(), "old\n");
    assert_eq!(notes::section(page, "0.1"), None);
}

#[test]
fn changelog_has_notes_for_this_version() {
    let version = version_of(&text("Cargo.toml")).unwrap();
    assert!(notes::section(&text("CHANGELOG.md"), &version).is_some());
}

#[test]
fn control_file_is_filled_in() {
    let control = deb::fill(&text("packaging/debian/control"), "1.2.3", "amd64", 77);
    assert!(control.contains("\nVersion: 1.2.3\nArchitecture: amd64\n"), "{control}");
    // The address of the maintainer has the only `@`.
    assert!(control.contains("\nInstalled-Size: 77\n"), "{control}");
    assert!(!control.replace("<wirefs@example.org>", "").contains('@'), "{control}");
}

#[test]
fn units_start_the_installed_program() {
    for path in [
        "packaging/systemd/wirefs-node.service",
        "packaging/systemd/wirefs-serve@.service",
        "packaging/systemd/user/wirefs@.service",
    ] {
        let unit = text(path);
        assert!(unit.contains("\nExecStart=/usr/bin/wirefs "), "{path}");
        assert!(unit.contains("\n[Install]\nWantedBy="), "{path}");
    }
}

#[test]
fn bill_lists_what_is_compiled_in_without_test_dependencies() {
    let node = |id: &str, deps: serde_json::Value| json!({"id": id, "deps": deps});
    let edge = |to: &str, kind: Option<&str>| json!({"pkg": to, "dep_kinds": [{"kind": kind}]});
    let package = |name: &str, source: Option<&str>| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "source": source});
    let metadata = json!({
        "packages": [package("wirefs", None), package("libc", Some("registry")), package("proptest", Some("registry"))],
        "resolve": {"nodes": [
            node("wirefs", json!([edge("libc", None), edge("proptest", Some("dev"))])),
            node("libc", json!([])),
        ]},
    });
    let lock =
        toml::from_str("[[package]]\nname = \"libc\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n").unwrap();
    let metadata = serde_json::from_value(metadata).unwrap();
    let bill = bill::document(json!({}), &metadata, &lock).unwrap();
    let packages = bill["packages"].as_array().unwrap();
    assert_eq!(packages.len(), 2, "{bill}");
    assert_eq!(packages[0]["externalRefs"][0]["referenceLocator"], "pkg:cargo/libc@1.0.0");
    assert_eq!(packages[0]["checksums"][0]["checksumValue"], "abc");
    assert_eq!(packages[0]["licenseDeclared"], "MIT OR Apache-2.0");
    assert_eq!(bill["relationships"][0]["relationshipType"], "DESCRIBES");
    assert_eq!(bill["relationships"][1]["relatedSpdxElement"], "SPDXRef-libc-1.0.0");
}
