//! The configuration file of `wirefs serve --config`: listen addresses and named exports.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use toml::Spanned;
use wirefs_carrier::Address;
use wirefs_carrier::tls::is_export_name;

use crate::arguments::ExportRights;
use crate::failure::failure;

/// The maximum number of exports of one server.
const EXPORTS_MAX: usize = 256;

/// The maximum size of the file, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A valid configuration.
#[derive(Debug)]
pub(super) struct Config {
    /// Addresses to listen on; empty: the default address.
    pub(super) listen: Vec<Address>,
    /// The authorized-keys file; `None`: the user's own.
    pub(super) authorized: Option<PathBuf>,
    /// `wirefs find-servers` finds the server.
    pub(super) announce: bool,
    /// The exports, at least one.
    pub(super) exports: Vec<ExportConfig>,
}

/// One export.
#[derive(Debug, PartialEq)]
pub(super) struct ExportConfig {
    /// The first component of the path in a client's URL.
    pub(super) name: String,
    /// The directory.
    pub(super) path: PathBuf,
    /// All changes are rejected.
    pub(super) read_only: bool,
    pub(super) rights: ExportRights,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawConfig {
    #[serde(default)]
    listen: Vec<Spanned<String>>,
    authorized: Option<PathBuf>,
    #[serde(default)]
    announce: bool,
    #[serde(default)]
    export: Vec<RawExport>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawExport {
    name: Spanned<String>,
    path: Spanned<PathBuf>,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    suid: bool,
    #[serde(default)]
    dev: bool,
    #[serde(default)]
    cross_mounts: bool,
}

impl Config {
    /// Reads and checks a file. Relative paths in it begin at its directory.
    ///
    /// # Errors
    /// The file cannot be read or is not valid; the error names the line.
    pub(super) fn read(file: &Path) -> Result<Config> {
        let cannot = || format!("cannot read {}", file.display());
        let size = std::fs::metadata(file).with_context(cannot)?.len();
        if size > FILE_BYTES_MAX {
            return Err(failure(
                format!("{} has more than {FILE_BYTES_MAX} bytes", file.display()),
                "name the configuration file, and not another one",
            ));
        }
        Config::parse(file, &std::fs::read_to_string(file).with_context(cannot)?)
    }

    fn parse(file: &Path, text: &str) -> Result<Config> {
        let at = |span: Option<Range<usize>>, problem: &str, next: &str| {
            let before = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
            failure(format!("{}:{line}: {problem}", file.display()), next)
        };
        let raw: RawConfig = toml::from_str(text).map_err(|error| {
            at(error.span(), error.message(), "correct this line, and start the server again")
        })?;
        let mut listen = Vec::new();
        for url in &raw.listen {
            let address = url.get_ref().parse::<Address>().map_err(|error| {
                at(Some(url.span()), &error.to_string(), "write an address as tls://[::]:6440")
            })?;
            if let Address::Unix(_) = address {
                let problem = "the URL of a unix socket cannot name an export";
                return Err(at(Some(url.span()), problem, "listen on a tls:// address"));
            }
            listen.push(address);
        }
        if raw.export.is_empty() {
            return Err(at(None, "there is no export", "add [[export]] with a name and a path"));
        }
        if let Some(first) = raw.export.get(EXPORTS_MAX) {
            let problem = format!("there are more than {EXPORTS_MAX} exports");
            return Err(at(Some(first.name.span()), &problem, "export a directory above them"));
        }
        let base = file.parent().unwrap_or(Path::new(""));
        let (mut names, mut exports) = (BTreeSet::new(), Vec::new());
        for export in raw.export {
            let (name, span) = (export.name.get_ref().clone(), export.name.span());
            if !is_export_name(&name) {
                let next = "use letters, digits, `.`, `_` and `-`, at most 64, without a leading `.`";
                return Err(at(Some(span), &format!("`{name}` is no name of an export"), next));
            }
            if !names.insert(name.clone()) {
                let problem = format!("the name `{name}` is used twice");
                return Err(at(Some(span), &problem, "give each export its own name"));
            }
            let path = base.join(export.path.get_ref());
            if !path.is_dir() {
                let problem = format!("{} is not a directory", path.display());
                return Err(at(Some(export.path.span()), &problem, "make it, or correct the path"));
            }
            let RawExport { read_only, suid, dev, cross_mounts, .. } = export;
            let rights = ExportRights { suid, dev, cross_mounts };
            exports.push(ExportConfig { name, path, read_only, rights });
        }
        let authorized = raw.authorized.map(|path| base.join(path));
        Ok(Config { listen, authorized, announce: raw.announce, exports })
    }
}
