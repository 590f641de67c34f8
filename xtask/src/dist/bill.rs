//! The software bill of materials, as SPDX 2.3 in JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::dist::command::Tool;
use crate::dist::{PACKAGE, PROGRAMS, Release};

/// The part of `cargo metadata` that the bill has.
#[derive(Deserialize)]
pub(super) struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Deserialize)]
struct EdgeKind {
    kind: Option<String>,
}

/// The part of `Cargo.lock` that the bill has.
#[derive(Deserialize)]
pub(super) struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Writes the bill of the programs: each crate that is compiled into one of them or builds it.
///
/// # Errors
/// Fails if cargo fails, or if its output has another form.
pub(super) fn make(release: &Release) -> anyhow::Result<()> {
    let root = &release.root;
    let words = "metadata --locked --format-version 1 --filter-platform x86_64-unknown-linux-musl";
    let metadata = serde_json::from_str(&Tool::new(root, "cargo").split_args(words).read()?)?;
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let lock = toml::from_str(&lock).context("Cargo.lock has an unknown form")?;
    let rustc = Tool::new(root, "rustc").split_args("--version").read()?;
    let time = Tool::new(root, "date")
        .split_args("-u +%FT%TZ")
        .args(["-d", &format!("@{}", release.epoch)])
        .read()?;
    let head = json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("{PACKAGE}-{}", release.version),
        "documentNamespace": format!("urn:spdx:{PACKAGE}-{}-{}", release.version, release.epoch),
        "creationInfo": {
            "created": time.trim(),
            "creators": ["Tool: cargo-xtask-dist", format!("Tool: rustc-{}", rustc.split(' ').nth(1).unwrap_or("unknown"))],
        },
    });
    let bill = document(head, &metadata, &lock)?;
    let text = serde_json::to_string_pretty(&bill)? + "\n";
    let name = format!("{PACKAGE}-{}.spdx.json", release.version);
    fs::write(release.out.join(name), text).context("cannot write the bill of materials")
}

/// Adds the packages and their relationships to the head of a document.
pub(super) fn document(mut head: Value, metadata: &Metadata, lock: &Lock) -> anyhow::Result<Value> {
    let packages: BTreeMap<&str, &Package> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let programs: Vec<&Package> =
        metadata.packages.iter().filter(|package| PROGRAMS.contains(&package.name.as_str())).collect();
    if programs.len() != PROGRAMS.len() {
        bail!("cargo metadata lacks one of the packages {PROGRAMS:?}");
    }
    let starts = || programs.iter().map(|package| package.id.as_str());
    let edges = edges(metadata, starts().collect());
    let reached: BTreeSet<&str> = starts().chain(edges.iter().map(|&(_, to)| to)).collect();
    let mut listed: Vec<&Package> = reached.iter().filter_map(|id| packages.get(id).copied()).collect();
    listed.sort_by_key(|package| (&package.name, &package.version));
    let entries: Vec<Value> = listed.iter().map(|package| entry(package, lock)).collect();

    let relationship = |from: String, kind: &str, to: String| json!({"spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to});
    let mut names: BTreeSet<(String, String)> = BTreeSet::new();
    for (from, to) in edges {
        if let (Some(from), Some(to)) = (packages.get(from), packages.get(to)) {
            names.insert((from.reference(), to.reference()));
        }
    }
    let document = || "SPDXRef-DOCUMENT".to_owned();
    let described = programs.iter().map(|program| relationship(document(), "DESCRIBES", program.reference()));
    let depends = names.into_iter().map(|(from, to)| relationship(from, "DEPENDS_ON", to));
    let relationships: Vec<Value> = described.chain(depends).collect();
    let fields = head.as_object_mut().context("the head of a bill is an object")?;
    fields.insert("packages".into(), entries.into());
    fields.insert("relationships".into(), relationships.into());
    Ok(head)
}

/// Returns the dependencies that are reachable from some packages, except those of tests.
fn edges<'a>(metadata: &'a Metadata, starts: Vec<&'a str>) -> Vec<(&'a str, &'a str)> {
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let is_built = |edge: &&Edge| edge.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev"));
    let (mut seen, mut pending, mut edges) = (BTreeSet::new(), starts, Vec::new());
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        for edge in nodes.get(id).into_iter().flat_map(|node| &node.deps).filter(is_built) {
            edges.push((id, edge.pkg.as_str()));
            pending.push(&edge.pkg);
        }
    }
    edges
}

impl Package {
    /// Returns the id of this package in the document, which allows letters, digits, `.` and `-`.
    fn reference(&self) -> String {
        let name = format!("{}-{}", self.name, self.version);
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
        format!("SPDXRef-{name}")
    }
}

fn entry(package: &Package, lock: &Lock) -> Value {
    let (name, version) = (&package.name, &package.version);
    let is_outside = package.source.is_some();
    let location = match is_outside {
        true => format!("https://crates.io/api/v1/crates/{name}/{version}/download"),
        false => "NOASSERTION".into(),
    };
    // The old form of a choice is `MIT/Apache-2.0`.
    let license =
        package.license.as_ref().map_or("NOASSERTION".into(), |license| license.replace('/', " OR "));
    let mut entry = json!({
        "SPDXID": package.reference(),
        "name": name,
        "versionInfo": version,
        "downloadLocation": location,
        "filesAnalyzed": false,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": license,
        "copyrightText": "NOASSERTION",
    });
    let locked = lock.package.iter().find(|locked| locked.name == *name && locked.version == *version);
    let checksum = locked.and_then(|locked| locked.checksum.as_ref());
    if let (Some(fields), true) = (entry.as_object_mut(), is_outside) {
        let place = json!({
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": format!("pkg:cargo/{name}@{version}"),
        });
        fields.insert("externalRefs".into(), json!([place]));
        if let Some(checksum) = checksum {
            fields.insert("checksums".into(), json!([{"algorithm": "SHA256", "checksumValue": checksum}]));
        }
    }
    entry
}
