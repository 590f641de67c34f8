//! `wirefs allow`, `keys` and `revoke`: the authorized-keys file of this user's servers.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use wirefs_carrier::tls::{AuthorizedKeys, KeyLine, KeyOptions, PublicKey, is_export_name};

use crate::arguments;
use crate::failure::failure;
use crate::terminal::{note, say};
use crate::user_dirs;

/// The mode of a new file.
const MODE_NEW: u32 = 0o600;

/// Authorizes a key. An earlier line of this key is replaced.
pub(crate) fn allow(arguments: &arguments::Allow) -> Result<()> {
    let text = arguments.key.join(" ");
    let line = KeyLine::parse(&text).map_err(|error| {
        failure(
            format!("`{text}`: {error}"),
            "run `wirefs identity` at the client, and repeat its output here as it is",
        )
    })?;
    if let Some(name) = arguments.export.iter().find(|name| !is_export_name(name)) {
        return Err(failure(
            format!("`{name}` is no name of an export"),
            "use letters, digits, `.`, `_` and `-`, at most 64, without a leading `.`",
        ));
    }
    let KeyOptions { read_only, mut exports, mut from } = line.options;
    exports.extend(arguments.export.iter().cloned());
    from.extend(arguments.from.iter().copied());
    let options = KeyOptions { read_only: read_only || arguments.read_only, exports, from };
    let line = KeyLine { options, ..line };
    let file = file(arguments.authorized.as_deref())?;
    change(&file, |text| {
        let mut lines: Vec<String> = without(text, |known| known.key == line.key);
        lines.push(line.to_string());
        Ok(lines)
    })?;
    say!("added to {}: {line}", file.display());
    Ok(())
}

/// Authorizes a key, unless a line of it exists: the limits there stay.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn add(authorized: Option<&Path>, key: PublicKey, comment: &str) -> Result<()> {
    change(&file(authorized)?, |text| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let is_known = |line: &String| KeyLine::parse(line).is_ok_and(|known| known.key == key);
        if !lines.iter().any(is_known) {
            lines.push(key.line(comment));
        }
        Ok(lines)
    })
}

/// Removes the lines of a key.
pub(crate) fn revoke(arguments: &arguments::Revoke) -> Result<()> {
    let name = arguments.key.join(" ");
    let file = file(arguments.authorized.as_deref())?;
    let mut keys = Vec::new();
    change(&file, |text| {
        keys = text
            .lines()
            .filter_map(|line| KeyLine::parse(line).ok())
            .filter(|it| is_named(it, &name))
            .collect();
        let first = keys.first().ok_or_else(|| unknown(&name, &file))?.key;
        if keys.iter().any(|line| line.key != first) {
            return Err(failure(
                format!("`{name}` names several keys"),
                "name one of them by its fingerprint, as in the first column of `wirefs keys`",
            ));
        }
        Ok(without(text, |known| known.key == first))
    })?;
    for line in keys {
        say!("removed from {}: {line}", file.display());
    }
    Ok(())
}

/// Lists the keys.
pub(crate) fn list(arguments: &arguments::Keys) -> Result<()> {
    let file = file(arguments.authorized.as_deref())?;
    for line in read(&file)?.lines().filter_map(|line| KeyLine::parse(line).ok()) {
        let options = line.options.to_string();
        let options = if options.is_empty() { "all" } else { &options };
        say!("{}  {options}  {}", line.key.fingerprint(), line.comment);
    }
    match AuthorizedKeys::read(&file) {
        Ok(keys) => keys.broken().iter().for_each(|broken| note!("wirefs: {broken}")),
        // The reason why servers use no key of it.
        Err(error) => note!("wirefs: {error}"),
    }
    Ok(())
}

fn unknown(name: &str, file: &Path) -> anyhow::Error {
    failure(
        format!("{} has no key `{name}`", file.display()),
        "run `wirefs keys`, and name a key by its fingerprint or its comment",
    )
}

/// Whether a user means this key: by its line, its fingerprint or its comment.
fn is_named(line: &KeyLine, name: &str) -> bool {
    let key = KeyLine::parse(name).map(|named| named.key).ok().or_else(|| PublicKey::parse(name));
    key == Some(line.key) || line.key.fingerprint().to_string() == name || line.comment == name
}

/// Returns all lines but those with such a key. Comments and broken lines stay.
fn without(text: &str, is_removed: impl Fn(&KeyLine) -> bool) -> Vec<String> {
    let stays = |line: &&str| !KeyLine::parse(line).is_ok_and(|known| is_removed(&known));
    text.lines().filter(stays).map(str::to_owned).collect()
}

fn file(named: Option<&Path>) -> Result<PathBuf> {
    let file = match named {
        Some(file) => file.to_owned(),
        None => user_dirs::config_dir()?.join("authorized_keys"),
    };
    // A symbolic link stays one.
    Ok(fs::canonicalize(&file).unwrap_or(file))
}

/// Returns the file's text; empty without a file.
fn read(file: &Path) -> Result<String> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        result => result.with_context(|| format!("cannot read {}", file.display())),
    }
}

/// Replaces the file as a whole: a server never reads half of it. Waits for other commands that change it.
fn change(file: &Path, lines: impl FnOnce(&str) -> Result<Vec<String>>) -> Result<()> {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(dir).with_context(|| format!("cannot make the directory {}", dir.display()))?;
    let cannot = || format!("cannot write {}", file.display());
    let parent = File::open(dir).with_context(cannot)?;
    // Until `parent` is closed.
    parent.lock().with_context(cannot)?;
    let text: String = lines(&read(file)?)?.iter().flat_map(|line| [line, "\n"]).collect();
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = dir.join(name);
    // The left-over of a command that was killed.
    let _none = fs::remove_file(&new);
    let mut output =
        OpenOptions::new().write(true).create_new(true).mode(MODE_NEW).open(&new).with_context(cannot)?;
    if let Ok(known) = fs::metadata(file) {
        let mode = Permissions::from_mode(known.permissions().mode());
        output.set_permissions(mode).with_context(cannot)?;
    }
    output.write_all(text.as_bytes()).and_then(|()| output.sync_all()).with_context(cannot)?;
    fs::rename(&new, file).with_context(cannot)?;
    parent.sync_all().with_context(cannot)
}
