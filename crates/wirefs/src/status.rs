//! `wirefs status`: what mounts do, for people and for programs.

mod path;
mod report;
mod table;

pub(crate) use path::Path;
pub(crate) use report::{Constants, Report};
pub(crate) use table::{bytes, span};

use std::path::PathBuf;

use anyhow::Result;

use crate::arguments;
use crate::control::{self, Ask, Line, Told};
use crate::failure::failure;
use crate::mountpoint;
use crate::terminal::say;

/// What the kernel calls the directory of nodes.
const NET: &str = "wirefs-net";

/// Prints one mount, or all of this user's.
pub(crate) fn run(arguments: &arguments::Status) -> Result<()> {
    match &arguments.mountpoint {
        Some(path) => one(path, arguments.json),
        None => all(arguments.json),
    }
}

fn one(path: &std::path::Path, json: bool) -> Result<()> {
    if let Some(place) = mountpoint::resolve(path).ok().and_then(|resolved| Place::of(&resolved)) {
        say!("{}", place.shown(json)?);
        return Ok(());
    }
    let mut line = connect(path)?;
    let report = ask(&mut line).map_err(|error| {
        failure(
            format!("the process that serves {} does not answer: {error}", path.display()),
            format!("try again, or clear the mount with `wirefs umount -f {}`", path.display()),
        )
    })?;
    if json {
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        say!("{}", table::of(&report));
    }
    Ok(())
}

fn all(json: bool) -> Result<()> {
    let reports: Vec<Report> = control::find_all().iter_mut().filter_map(|line| ask(line).ok()).collect();
    if json {
        say!("{}", serde_json::to_string_pretty(&reports)?);
        return Ok(());
    }
    for (index, report) in reports.iter().enumerate() {
        if index > 0 {
            say!("");
        }
        say!("{}", table::of(report));
    }
    let nodes = crate::node::list::reached();
    if !nodes.is_empty() {
        say!("nodes (`wirefs node list` shows all):\n{}", nodes.join("\n"));
    }
    let mut silent = mountpoint::mounted();
    silent.retain(|(path, _)| !reports.iter().any(|report| std::path::Path::new(&report.mountpoint) == path));
    // What a node of this user mounted for others is told above, where it is in use.
    let ours = places_of_nodes();
    silent.retain(|(path, _)| !ours.iter().any(|place| path.starts_with(place)));
    for (path, source) in &silent {
        say!(
            "{source} on {}: no process of this user answers for it; another user's, or dead (`wirefs umount -f {}` clears it)",
            path.display(),
            path.display()
        );
    }
    if reports.is_empty() && silent.is_empty() {
        say!("nothing is mounted; `wirefs mount SOURCE MOUNTPOINT` mounts a directory");
    }
    Ok(())
}

/// Where this user's node has other nodes: their directory, and where each is mounted once it is used. None: there is no node.
fn places_of_nodes() -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> =
        mountpoint::mounted().into_iter().filter(|(_, source)| source == NET).map(|(path, _)| path).collect();
    if places.is_empty() || !crate::node::is_here() {
        return Vec::new();
    }
    places.extend(crate::places::runtime_dirs().into_iter().map(|dir| dir.join("net")));
    places
}

/// A place that this user's node serves, whose process has no line for it alone.
enum Place {
    /// The directory of nodes.
    Nodes,
    /// A node, by its name, or something below it.
    Node(String),
}

impl Place {
    fn of(resolved: &std::path::Path) -> Option<Place> {
        places_of_nodes().iter().find_map(|place| Place::below(place, resolved))
    }

    fn below(place: &std::path::Path, resolved: &std::path::Path) -> Option<Place> {
        let below = resolved.strip_prefix(place).ok()?;
        Some(match below.components().next() {
            Some(name) => Place::Node(name.as_os_str().to_string_lossy().into_owned()),
            None => Place::Nodes,
        })
    }

    /// The node's account of it.
    fn shown(&self, json: bool) -> Result<String> {
        match self {
            Place::Nodes => crate::node::list::of_all(json),
            Place::Node(name) => crate::node::list::of_one(name, json),
        }
    }
}

fn ask(line: &mut Line) -> std::io::Result<Report> {
    line.ask(Ask::Status)?;
    match line.answer()? {
        Told::Status(report) => Ok(*report),
        Told::Echo(_) | Told::Progress { .. } | Told::Done => {
            Err(std::io::Error::other("it answers something else"))
        }
        Told::Failed { message } => Err(std::io::Error::other(message)),
    }
}

/// Reaches the process that serves a mount of this user.
///
/// # Errors
/// There is none; the text says whether there is a mount at all.
pub(crate) fn connect(path: &std::path::Path) -> Result<Line> {
    let resolved = mountpoint::resolve(path).map_err(|error| {
        failure(
            format!("{} cannot be found: {error}", path.display()),
            "name a mountpoint; `wirefs status` lists them",
        )
    })?;
    control::find(&resolved).ok_or_else(|| {
        if Place::of(&resolved).is_some() {
            return failure(
                format!("{} is served by this user's node, together with all others", path.display()),
                format!(
                    "`wirefs status {}` shows it; `wirefs node down` brings what was written to all nodes",
                    path.display()
                ),
            );
        }
        let is_mounted = mountpoint::mounted().iter().any(|(known, _)| *known == resolved);
        if is_mounted {
            failure(
                format!("no process of this user answers for the mount at {}", path.display()),
                format!(
                    "ask as the user who mounted it; if it is dead, `wirefs umount -f {}` clears it",
                    path.display()
                ),
            )
        } else {
            failure(
                format!("nothing is mounted by wirefs at {}", path.display()),
                "`wirefs status` lists what is",
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path as FilePath;

    #[test]
    fn a_place_below_the_directory_of_nodes_is_the_node_of_that_name() {
        let of = |path| match Place::below(FilePath::new("/run/wirefs/net"), FilePath::new(path)) {
            Some(Place::Node(name)) => name,
            Some(Place::Nodes) => "/".to_owned(),
            None => String::new(),
        };
        let found =
            ["/run/wirefs/net/two", "/run/wirefs/net/two/dir", "/run/wirefs/net", "/run/wirefs/network/x"]
                .map(of);
        assert_eq!(found, ["two", "two", "/", ""]);
    }
}
