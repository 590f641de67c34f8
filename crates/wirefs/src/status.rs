//! `wirefs status`: the state of mounts, in five lines, with all counters, or as JSON.

mod path;
mod report;
mod summary;
mod table;

pub(crate) use path::Path;
pub(crate) use report::{Constants, Line, Report};
pub(crate) use table::{bytes, span};

use std::path::PathBuf;

use anyhow::Result;

use crate::arguments;
use crate::control::{self, ControlClient, ControlReply, ControlRequest};
use crate::failure::failure;
use crate::mountpoint;
use crate::terminal::say;
use crate::unsent;

/// The kernel's name of the directory of nodes.
const NET: &str = "wirefs-net";

/// Prints one mount, or all of this user's.
pub(crate) fn run(arguments: &arguments::Status) -> Result<()> {
    match &arguments.mountpoint {
        Some(path) => one(path, arguments),
        None => all(arguments),
    }
}

/// Returns the status of a mount as text.
fn text(report: &Report, arguments: &arguments::Status) -> String {
    match arguments.verbose {
        true => format!("{}\n{}", summary::of(report), table::of(report)),
        false => summary::of(report),
    }
}

fn one(path: &std::path::Path, arguments: &arguments::Status) -> Result<()> {
    let json = arguments.json;
    if let Some(net_path) = mountpoint::resolve(path).ok().and_then(|resolved| NetPath::of(&resolved)) {
        say!("{}", net_path.shown(json)?);
        return Ok(());
    }
    let mut line = connect(path)?;
    let report = request_status(&mut line).map_err(|error| {
        failure(
            format!("the process that serves {} does not answer: {error}", path.display()),
            format!("try again, or clear the mount with `wirefs umount -f {}`", path.display()),
        )
    })?;
    if json {
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        say!("{}", text(&report, arguments));
    }
    Ok(())
}

fn all(arguments: &arguments::Status) -> Result<()> {
    let reports: Vec<Report> =
        control::find_all().iter_mut().filter_map(|line| request_status(line).ok()).collect();
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&reports)?);
        return Ok(());
    }
    for (index, report) in reports.iter().enumerate() {
        if index > 0 {
            say!("");
        }
        say!("{}", text(report, arguments));
    }
    let nodes = crate::node::list::reached();
    if !nodes.is_empty() {
        say!("nodes (`wirefs node list` shows all):\n{}", nodes.join("\n"));
    }
    let mut silent = mountpoint::mounted();
    silent.retain(|mount| !reports.iter().any(|report| mount.mountpoint == *report.mountpoint));
    // Mounts by this user's node are listed above, if connected.
    let ours = node_directories();
    silent.retain(|mount| !ours.iter().any(|net_path| mount.mountpoint.starts_with(net_path)));
    for mount in &silent {
        let (source, path) = (&mount.source, mount.mountpoint.display());
        if mount.is_foreign() {
            say!(
                "{source} on {path}: a mount of the user with id {}, whose `wirefs status` shows it",
                mount.user
            );
        } else {
            say!(
                "{source} on {path}: no process answers; if it has ended, `wirefs umount -f {path}` clears the mount"
            );
        }
    }
    let left = unsent::left();
    for (source, unsent) in &left {
        say!("{}", unsent::line(source, unsent));
    }
    if reports.is_empty() && silent.is_empty() && left.is_empty() {
        say!("nothing is mounted; `wirefs mount SOURCE MOUNTPOINT` mounts a directory");
    }
    Ok(())
}

/// Returns the directories of this user's node: the directory of nodes, and that of their mounts. Empty without a node.
fn node_directories() -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = mountpoint::mounted()
        .into_iter()
        .filter(|mount| mount.source == NET)
        .map(|mount| mount.mountpoint)
        .collect();
    if directories.is_empty() || !crate::node::is_local() {
        return Vec::new();
    }
    directories.extend(crate::user_dirs::runtime_dirs().into_iter().map(|dir| dir.join("net")));
    directories
}

/// A path served by this user's node, whose process has no control socket for it alone.
enum NetPath {
    /// The directory of nodes.
    Nodes,
    /// A node, by its name, or a path below it.
    Node(String),
}

impl NetPath {
    fn of(resolved: &std::path::Path) -> Option<NetPath> {
        node_directories().iter().find_map(|net_path| NetPath::below(net_path, resolved))
    }

    fn below(net_path: &std::path::Path, resolved: &std::path::Path) -> Option<NetPath> {
        let below = resolved.strip_prefix(net_path).ok()?;
        Some(match below.components().next() {
            Some(name) => NetPath::Node(name.as_os_str().to_string_lossy().into_owned()),
            None => NetPath::Nodes,
        })
    }

    /// Returns the node's report of it.
    fn shown(&self, json: bool) -> Result<String> {
        match self {
            NetPath::Nodes => crate::node::list::of_all(json),
            NetPath::Node(name) => crate::node::list::of_one(name, json),
        }
    }
}

pub(crate) fn request_status(line: &mut ControlClient) -> std::io::Result<Report> {
    line.send(ControlRequest::Status)?;
    match line.answer()? {
        ControlReply::Status(report) => Ok(*report),
        ControlReply::Sample(_)
        | ControlReply::Echo(_)
        | ControlReply::Progress(_)
        | ControlReply::Ended(_)
        | ControlReply::Done => Err(std::io::Error::other("it sent an unexpected answer")),
        ControlReply::Failed { message } => Err(std::io::Error::other(message)),
    }
}

/// Connects to the process of a mount of this user.
///
/// # Errors
/// There is none; the error tells whether there is a mount at all.
pub(crate) fn connect(path: &std::path::Path) -> Result<ControlClient> {
    let resolved = mountpoint::resolve(path).map_err(|error| {
        failure(
            format!("{} cannot be found: {error}", path.display()),
            "name a mountpoint; `wirefs status` lists them",
        )
    })?;
    control::find(&resolved).ok_or_else(|| {
        if NetPath::of(&resolved).is_some() {
            return failure(
                format!("{} is served by this user's node, together with all other nodes", path.display()),
                format!(
                    "`wirefs status {}` shows it; `wirefs node down` sends pending writes to all nodes",
                    path.display()
                ),
            );
        }
        let mount = mountpoint::mounted().into_iter().find(|mount| mount.mountpoint == resolved);
        if let Some(mount) = mount.as_ref().filter(|mount| mount.is_foreign()) {
            failure(
                format!("{} is a mount of the user with id {}", path.display(), mount.user),
                "that user's commands reach it",
            )
        } else if mount.is_some() {
            failure(
                format!("no process answers for the mount at {}", path.display()),
                format!("if its process has ended, `wirefs umount -f {}` clears the mount", path.display()),
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
        let of = |path| match NetPath::below(FilePath::new("/run/wirefs/net"), FilePath::new(path)) {
            Some(NetPath::Node(name)) => name,
            Some(NetPath::Nodes) => "/".to_owned(),
            None => String::new(),
        };
        let found =
            ["/run/wirefs/net/two", "/run/wirefs/net/two/dir", "/run/wirefs/net", "/run/wirefs/network/x"]
                .map(of);
        assert_eq!(found, ["two", "two", "/", ""]);
    }
}
