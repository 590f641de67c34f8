//! The dependencies in the manifests.

use anyhow::Context;
use toml::{Table as Toml, Value};

use crate::tree::Tree;

/// The kind of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DependencyKind {
    /// Of the crate itself or its build script.
    Build,
    /// Of its tests, examples and benches.
    Dev,
}

/// One dependency.
#[derive(Debug)]
pub(super) struct Dependency {
    /// The name in the manifest.
    pub(super) key: String,
    /// The package of that name.
    pub(super) package: String,
    /// The kind.
    pub(super) kind: DependencyKind,
}

/// The `Cargo.toml` of a package.
pub(super) struct Manifest {
    /// The path from the root.
    pub(super) path: String,
    /// The package name.
    pub(super) package: String,
    /// All dependencies, including target-specific ones.
    pub(super) dependencies: Vec<Dependency>,
    text: String,
}

impl Manifest {
    /// Reads every `Cargo.toml` that has a package.
    ///
    /// # Errors
    /// Fails if one is not valid TOML.
    pub(super) fn read_all(tree: &Tree) -> anyhow::Result<Vec<Manifest>> {
        let mut manifests = Vec::new();
        for file in tree.files.iter().filter(|file| file.path.ends_with("/Cargo.toml")) {
            let toml: Toml = file.text.parse().with_context(|| format!("{} is not TOML", file.path))?;
            let Some(package) = name_of_package(&toml) else {
                continue;
            };
            manifests.push(Manifest {
                path: file.path.clone(),
                package: package.into(),
                dependencies: dependencies(&toml),
                text: file.text.clone(),
            });
        }
        Ok(manifests)
    }

    /// Returns the name of its folder.
    pub(super) fn folder(&self) -> &str {
        self.path.trim_end_matches("/Cargo.toml").rsplit('/').next().unwrap_or_default()
    }

    /// Returns the first line that begins with the dependency `key`, counted from 1.
    pub(super) fn line_of(&self, key: &str) -> usize {
        let begins = |line: &str| line.trim_start().starts_with(key) || line.contains(&format!(".{key}]"));
        self.text.lines().position(begins).map_or(1, |at| at + 1)
    }
}

fn name_of_package(toml: &Toml) -> Option<&str> {
    toml.get("package")?.get("name")?.as_str()
}

fn dependencies(toml: &Toml) -> Vec<Dependency> {
    let targets = toml.get("target").and_then(Value::as_table).into_iter().flat_map(Toml::values);
    let tables = std::iter::once(toml).chain(targets.filter_map(Value::as_table));
    let mut found = Vec::new();
    for table in tables {
        let sections = [
            ("dependencies", DependencyKind::Build),
            ("build-dependencies", DependencyKind::Build),
            ("dev-dependencies", DependencyKind::Dev),
        ];
        for (name, section) in sections {
            let listed = table.get(name).and_then(Value::as_table).into_iter().flatten();
            found.extend(listed.map(|(key, value)| Dependency {
                key: key.clone(),
                package: value.get("package").and_then(Value::as_str).unwrap_or(key).into(),
                kind: section,
            }));
        }
    }
    found
}
