use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::dist::machine::Machine;
use crate::dist::{PROGRAMS, bill, deb, notes, version_of};

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
        "packages": [
            package("wirefs", None),
            package("wirefs-gate", None),
            package("wirefs-grpc", None),
            package("libc", Some("registry")),
            package("tokio", Some("registry")),
            package("proptest", Some("registry")),
        ],
        "resolve": {"nodes": [
            node("wirefs", json!([edge("libc", None), edge("proptest", Some("dev"))])),
            node("wirefs-gate", json!([])),
            node("wirefs-grpc", json!([edge("tokio", None)])),
            node("libc", json!([])),
        ]},
    });
    let lock =
        toml::from_str("[[package]]\nname = \"libc\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n").unwrap();
    let metadata = serde_json::from_value(metadata).unwrap();
    let bill = bill::document(json!({}), &metadata, &lock).unwrap();
    let packages = bill["packages"].as_array().unwrap();
    assert_eq!(packages.len(), 5, "{bill}");
    assert_eq!(packages[0]["externalRefs"][0]["referenceLocator"], "pkg:cargo/libc@1.0.0");
    assert_eq!(packages[0]["checksums"][0]["checksumValue"], "abc");
    assert_eq!(packages[0]["licenseDeclared"], "MIT OR Apache-2.0");
    for program in 0..PROGRAMS.len() {
        assert_eq!(bill["relationships"][program]["relationshipType"], "DESCRIBES");
    }
    assert_eq!(bill["relationships"][3]["relatedSpdxElement"], "SPDXRef-libc-1.0.0");
    assert_eq!(bill["relationships"][4]["relatedSpdxElement"], "SPDXRef-tokio-1.0.0");
}

#[test]
fn all_programs_are_installed() {
    let scratch = std::env::temp_dir().join(format!("wirefs-install-{}", std::process::id()));
    let (built, staged) = (scratch.join("built"), scratch.join("staged"));
    std::fs::create_dir_all(&built).unwrap();
    // The installer asks the main program for its pages.
    let program = "#!/bin/sh\n[ \"$1\" != man ] || { mkdir -p \"$3\" && : >\"$3/wirefs.1\"; }\n";
    for name in PROGRAMS {
        std::fs::write(built.join(name), program).unwrap();
        std::fs::set_permissions(built.join(name), Permissions::from_mode(0o755)).unwrap();
    }
    let mut install = Command::new(root().join("scripts/install"));
    install.env("PREFIX", "/usr").env("DESTDIR", &staged).env("BINARY", built.join("wirefs"));
    let done = install.env("HOST", built.join("wirefs")).output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    for name in PROGRAMS {
        let mode = std::fs::metadata(staged.join("usr/bin").join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755, "{name}");
    }
    // A program alone is installed alone, and the installer says so.
    std::fs::remove_file(built.join("wirefs-grpc")).unwrap();
    std::fs::remove_dir_all(&staged).unwrap();
    let done = install.output().unwrap();
    assert!(done.status.success());
    assert!(String::from_utf8(done.stderr).unwrap().starts_with("wirefs-grpc is not installed"));
    std::fs::remove_dir_all(&scratch).unwrap();
}
