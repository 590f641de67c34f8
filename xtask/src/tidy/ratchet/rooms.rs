//! The rooms of the client: calls and imports between its files that run up, circles, and functions that get the whole client.
//!
//! A table of `ARCHITECTURE.md` lists the rooms from the top down. An arrow leads from a file to another one that it imports, or whose
//! method it calls on one of the structs in [`OPEN`]. These structs have methods in many files, so imports alone do not show who calls whom.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::rust::attribute::closing;
use crate::rust::{RustFile, Span, is_word, words};
use crate::tree::Tree;

mod imports;

/// The folder of the client's sources.
const SOURCES: &str = "crates/wirefs-client/src/";
/// The page with the table of rooms, and the table's head.
const PAGE: &str = "ARCHITECTURE.md";
const HEAD: [&str; 2] = ["room, from the top down", "files"];
/// The structs with methods in many files, each with the name that values of it have.
const OPEN: [(&str, &str); 4] =
    [("Client", "client"), ("View", "view"), ("Sender", "sender"), ("Answerer", "answerer")];
/// The struct that holds all rooms.
const WHOLE: &str = "Client";
/// The module that declares all others, and exports: not a file of a room.
const ROOT: &str = "lib.rs";

/// The arrows between the client's files.
struct Rooms<'a> {
    files: Vec<&'a RustFile>,
    /// From a file to the files that it needs, as places in `files`.
    arrows: BTreeMap<usize, BTreeSet<usize>>,
}

/// Each pair of files whose arrow leads to a room above, and each file without a room.
pub(super) fn upward(tree: &Tree) -> Vec<Finding> {
    let rooms = Rooms::read(tree);
    let table = table(tree);
    let mut findings = Vec::new();
    for (&from, targets) in &rooms.arrows {
        let Some(own) = rooms.name(from).and_then(|name| room_of(&table, name)) else {
            if let Some(file) = rooms.files.get(from) {
                let message = format!("no room in the table of {PAGE} has this file");
                findings.push(Finding::error(&file.path, 1, message, "add it there"));
            }
            continue;
        };
        for name in targets.iter().filter_map(|&to| rooms.name(to)) {
            if let (Some(room), Some(file)) = (room_of(&table, name), rooms.files.get(from))
                && room < own
            {
                let message = format!("needs {name}, which is in a room above");
                findings.push(Finding::error(&file.path, 1, message, "give it the rooms that it needs"));
            }
        }
    }
    findings
}

/// The files of the largest circle of arrows.
pub(super) fn circle(tree: &Tree) -> Vec<Finding> {
    let rooms = Rooms::read(tree);
    let reached: BTreeMap<usize, BTreeSet<usize>> =
        rooms.arrows.keys().map(|&from| (from, rooms.reached(from))).collect();
    let circle_of = |from: usize| -> Vec<usize> {
        let back = |to: &usize| reached.get(to).is_some_and(|targets| targets.contains(&from));
        reached.get(&from).into_iter().flatten().copied().filter(back).collect()
    };
    let largest = reached.keys().map(|&from| circle_of(from)).max_by_key(Vec::len).unwrap_or_default();
    let files = largest.iter().filter_map(|&at| rooms.files.get(at));
    files.map(|file| Finding::error(&file.path, 1, "in the largest circle", "remove one arrow")).collect()
}

/// Functions that can change every room: methods of the whole client, and functions that get it.
pub(super) fn whole(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in sources(tree) {
        let methods = implementations(file, WHOLE);
        for function in file.functions.iter().filter(|function| !file.is_test(function.span.start)) {
            let head = file.mask.code.get(function.span.start..function.body.start).unwrap_or_default();
            let is_method =
                head.contains("&mut self") && methods.iter().any(|span| span.contains(&function.span.start));
            if is_method || head.contains("&mut Client") {
                let message = format!("{} gets the whole client", function.name);
                let mend = "give it the rooms that it needs";
                findings.push(Finding::error(&file.path, file.line(function.span.start), message, mend));
            }
        }
    }
    findings
}

impl<'a> Rooms<'a> {
    fn read(tree: &'a Tree) -> Rooms<'a> {
        let files: Vec<&RustFile> = sources(tree).collect();
        let places: BTreeMap<&str, usize> =
            files.iter().enumerate().map(|(at, file)| (relative(file), at)).collect();
        let mut arrows: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        let defined: Vec<(&str, &str, BTreeMap<&str, usize>)> =
            OPEN.iter().map(|&(name, value)| (name, value, methods(&files, name))).collect();
        for (from, file) in files.iter().enumerate() {
            let targets = arrows.entry(from).or_default();
            targets.extend(imports::of(relative(file), file, |path| places.get(path).copied()));
            for (name, value, methods) in &defined {
                let own = implementations(file, name);
                let called = calls(file).filter(|(at, receiver, _)| {
                    receiver == value || *receiver == "self" && own.iter().any(|span| span.contains(at))
                });
                targets.extend(called.filter_map(|(_, _, method)| methods.get(method)));
            }
            targets.remove(&from);
        }
        Rooms { files, arrows }
    }

    fn name(&self, at: usize) -> Option<&str> {
        self.files.get(at).map(|file| relative(file))
    }

    /// All files that arrows lead to from this one, itself only in a circle.
    fn reached(&self, from: usize) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut pending = vec![from];
        while let Some(at) = pending.pop() {
            let next = self.arrows.get(&at).into_iter().flatten();
            pending.extend(next.filter(|&&to| seen.insert(to)));
        }
        seen
    }
}

fn sources(tree: &Tree) -> impl Iterator<Item = &RustFile> {
    let is_source = |file: &&RustFile| file.path.starts_with(SOURCES) && !file.is_test(0);
    tree.rust.iter().filter(is_source).filter(|file| relative(file) != ROOT)
}

fn relative(file: &RustFile) -> &str {
    file.path.strip_prefix(SOURCES).unwrap_or(&file.path)
}

/// The bodies of `impl NAME { … }`, also with a lifetime.
fn implementations(file: &RustFile, name: &str) -> Vec<Span> {
    let code = &file.mask.code;
    let body = |at: usize| {
        let rest = code.get(at + "impl".len()..)?.trim_start().strip_prefix(name)?.trim_start();
        let rest = rest.strip_prefix("<'_>").map_or(rest, str::trim_start);
        rest.starts_with('{').then(|| code.len() - rest.len())
    };
    words(code, "impl").filter_map(body).map(|open| open..closing(code, open)).collect()
}

/// The methods of a struct, each with the place of its file.
fn methods<'a>(files: &[&'a RustFile], name: &str) -> BTreeMap<&'a str, usize> {
    let mut methods = BTreeMap::new();
    for (at, file) in files.iter().enumerate() {
        let spans = implementations(file, name);
        let is_method = |start: usize| spans.iter().any(|span| span.contains(&start));
        let own = file.functions.iter().filter(|function| is_method(function.span.start));
        methods.extend(own.map(|function| (function.name.as_str(), at)));
    }
    methods
}

/// The calls `receiver.method(…)` and `receiver().method(…)` of a file: position, last name of the receiver, method.
fn calls(file: &RustFile) -> impl Iterator<Item = (usize, &str, &str)> {
    let code = &file.mask.code;
    code.match_indices('.').filter_map(|(at, _)| {
        let rest = code.get(at + 1..)?;
        let method = rest.get(..rest.find(|c| !is_word(c))?)?;
        let is_call = rest.get(method.len()..)?.trim_start().starts_with(['(', ':']);
        let before = code.get(..at)?.trim_end();
        let before = before.strip_suffix("()").unwrap_or(before);
        let start = before.rfind(|c| !is_word(c)).map_or(0, |end| end + 1);
        (is_call && !method.is_empty()).then_some((at, before.get(start..)?, method))
    })
}

/// The rooms of the table from the top down, each with its files: a file, or a folder with `/` at its end.
fn table(tree: &Tree) -> Vec<Vec<&str>> {
    let mut rooms = Vec::new();
    let mut is_inside = false;
    for line in tree.file(PAGE).map_or("", |page| page.text.as_str()).lines() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        match cells.as_slice() {
            [first, second, ..] if [*first, *second] == HEAD => is_inside = true,
            [first, ..] if is_inside && first.starts_with('-') => {}
            [_, files, ..] if is_inside => rooms.push(files.split('`').skip(1).step_by(2).collect()),
            _ => is_inside = false,
        }
    }
    rooms
}

/// The place of a file's room. The longest name wins: a folder's file may have a room of its own.
fn room_of(table: &[Vec<&str>], name: &str) -> Option<usize> {
    let matches = |part: &str| name == part || part.ends_with('/') && name.starts_with(part);
    let fits = table.iter().enumerate().flat_map(|(room, files)| files.iter().map(move |part| (room, *part)));
    fits.filter(|(_, part)| matches(part)).max_by_key(|(_, part)| part.len()).map(|(room, _)| room)
}
