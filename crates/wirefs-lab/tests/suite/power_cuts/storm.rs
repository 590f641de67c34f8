//! A storm of changes: one after the other, all of them decided by the seed and none by how those before went.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

use wirefs_lab::random::Random;

/// Directories that are always there.
pub(super) const DIRECTORIES: u64 = 8;
/// Names in each.
const NAMES: u64 = 60;
/// Directories below them that come and go.
const BELOW: u64 = 3;
/// Changes after which it is decided anew how often something is synced.
const SPELL: u64 = 400;

/// Data of a call. Shown by its length and its beginning, which names the step.
#[derive(Clone)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl From<String> for Bytes {
    fn from(text: String) -> Bytes {
        Bytes(text.into_bytes())
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beginning = String::from_utf8_lossy(self.0.get(..12).unwrap_or(&self.0));
        write!(f, "{} bytes {beginning:?}", self.0.len())
    }
}

/// One call.
#[derive(Clone, Debug)]
pub(super) enum Call {
    /// Opened with O_CREAT and O_TRUNC, written, closed.
    Write(String, Bytes),
    /// Written at an offset, by a descriptor that stays open.
    Patch(String, u64, Bytes),
    Append(String, Bytes),
    Truncate(String, u64),
    Chmod(String, u32),
    SetXattr(String, Bytes),
    RemoveXattr(String),
    Rename(String, String),
    Link(String, String),
    Symlink(String, String),
    Unlink(String),
    Mkdir(String),
    Rmdir(String),
    SyncFile(String),
    SyncDirectory(String),
}

/// The effect of a call on a file or a name.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    /// The contents of the file change.
    Changed(u64),
    /// The file gets this name.
    Named(u64, String),
    /// The name goes, or gets another file.
    Unnamed(String),
    /// The file has no name any more.
    Gone(u64),
    /// The file is synced, and has these names.
    SyncedFile(u64, Vec<String>),
    /// These names are synced.
    SyncedNames(Vec<String>),
}

/// A call and its effects.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) call: Call,
    pub(super) effects: Vec<Effect>,
    /// The file that the call is about.
    pub(super) file: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    File(u64),
    Symlink,
    Directory,
}

/// The steps of a seed, without end.
pub(super) struct Storm {
    dice: Random,
    names: BTreeMap<String, Node>,
    files: u64,
    has_xattr: Vec<u64>,
    steps: u64,
    /// Of 1,000 steps so many sync something.
    syncs: u64,
}

impl Storm {
    pub(super) fn new(seed: u64) -> Storm {
        Storm {
            dice: Random::new(seed ^ 0x570_4311),
            names: BTreeMap::new(),
            files: 0,
            has_xattr: Vec::new(),
            steps: 0,
            syncs: 0,
        }
    }

    pub(super) fn next(&mut self) -> Step {
        let first = self.steps;
        self.steps += 1;
        if first < DIRECTORIES {
            let name = format!("d{first}");
            self.names.insert(name.clone(), Node::Directory);
            return step(Call::Mkdir(name), Vec::new());
        }
        if first.is_multiple_of(SPELL) {
            self.syncs = [0, 0, 5, 60][self.dice.below(4) as usize];
        }
        loop {
            if let Some(step) = self.draw() {
                return step;
            }
        }
    }

    fn draw(&mut self) -> Option<Step> {
        if self.dice.below(1_000) < self.syncs {
            return self.sync();
        }
        match self.dice.below(100) {
            0..=27 => self.write(),
            28..=51 => self.rename(),
            52..=60 => self.link(),
            61..=69 => self.unlink(),
            70..=75 => self.patch(),
            76..=79 => self.truncate(),
            80..=83 => self.chmod(),
            84..=87 => self.xattr(),
            88..=91 => self.append(),
            92 => self.symlink(),
            93..=95 => self.mkdir(),
            96 => self.rmdir(),
            _ => self.rename_directory(),
        }
    }

    fn all(&self, is_wanted: impl Fn(&str, Node) -> bool) -> Vec<String> {
        self.names
            .iter()
            .filter(|(name, node)| is_wanted(name, **node))
            .map(|(name, _)| name.clone())
            .collect()
    }

    fn one_of(&mut self, mut names: Vec<String>) -> Option<String> {
        let at = self.dice.below(names.len() as u64) as usize;
        (at < names.len()).then(|| names.swap_remove(at))
    }

    fn a_file(&mut self) -> Option<(String, u64)> {
        let name = self.one_of(self.all(|_, node| matches!(node, Node::File(_))))?;
        let Some(Node::File(id)) = self.names.get(&name).copied() else { return None };
        Some((name, id))
    }

    fn a_directory(&mut self) -> Option<String> {
        self.one_of(self.all(|_, node| node == Node::Directory))
    }

    /// A name in one of the directories, which may be there; it is no directory's.
    fn a_name(&mut self) -> Option<String> {
        Some(format!("{}/n{}", self.a_directory()?, self.dice.below(NAMES)))
    }

    fn text(&mut self) -> Bytes {
        let (number, often) = (self.steps, self.dice.below(2_500) + 1);
        let often = if self.dice.below(40) == 0 { often * 20 } else { often };
        format!("{number}:").repeat(often as usize).into()
    }

    fn names_of(&self, id: u64) -> Vec<String> {
        self.all(|_, node| node == Node::File(id))
    }

    /// The effects of a name that goes, or gets another file.
    fn lose(&mut self, name: &str) -> Vec<Effect> {
        let mut effects = vec![Effect::Unnamed(name.to_owned())];
        if let Some(Node::File(id)) = self.names.remove(name)
            && self.names_of(id).is_empty()
        {
            effects.push(Effect::Gone(id));
        }
        effects
    }

    fn write(&mut self) -> Option<Step> {
        let (name, text) = (self.a_name()?, self.text());
        match self.names.get(&name).copied() {
            Some(Node::File(id)) => about(id, Call::Write(name, text), vec![Effect::Changed(id)]),
            Some(Node::Symlink | Node::Directory) => None,
            None => {
                self.files += 1;
                self.names.insert(name.clone(), Node::File(self.files));
                about(self.files, Call::Write(name.clone(), text), vec![Effect::Named(self.files, name)])
            }
        }
    }

    fn rename(&mut self) -> Option<Step> {
        let from = self.one_of(self.all(|_, node| node != Node::Directory))?;
        let to = self.a_name()?;
        let node = *self.names.get(&from)?;
        if from == to || (self.names.get(&to) == Some(&node) && node != Node::Symlink) {
            // The kernel does nothing where both are names of one file.
            return Some(step(Call::Rename(from, to), Vec::new()));
        }
        let mut effects = self.lose(&to);
        self.names.remove(&from);
        effects.push(Effect::Unnamed(from.clone()));
        self.names.insert(to.clone(), node);
        if let Node::File(id) = node {
            effects.push(Effect::Named(id, to.clone()));
        }
        Some(step(Call::Rename(from, to), effects))
    }

    fn link(&mut self) -> Option<Step> {
        let ((from, id), to) = (self.a_file()?, self.a_name()?);
        if self.names.contains_key(&to) {
            return None;
        }
        self.names.insert(to.clone(), Node::File(id));
        about(id, Call::Link(from, to.clone()), vec![Effect::Named(id, to)])
    }

    fn symlink(&mut self) -> Option<Step> {
        let name = self.a_name().filter(|name| !self.names.contains_key(name))?;
        self.names.insert(name.clone(), Node::Symlink);
        Some(step(Call::Symlink(format!("to{}", self.steps), name), Vec::new()))
    }

    fn unlink(&mut self) -> Option<Step> {
        let name = self.one_of(self.all(|_, node| node != Node::Directory))?;
        let effects = self.lose(&name);
        Some(step(Call::Unlink(name), effects))
    }

    fn patch(&mut self) -> Option<Step> {
        let ((name, id), offset) = (self.a_file()?, self.dice.below(5_000));
        let text = Bytes::from(format!("<{}>", self.steps));
        about(id, Call::Patch(name, offset, text), vec![Effect::Changed(id)])
    }

    fn append(&mut self) -> Option<Step> {
        let (name, id) = self.a_file()?;
        let text = Bytes::from(format!("+{}", self.steps));
        about(id, Call::Append(name, text), vec![Effect::Changed(id)])
    }

    fn truncate(&mut self) -> Option<Step> {
        let ((name, id), size) = (self.a_file()?, self.dice.below(8_000));
        about(id, Call::Truncate(name, size), vec![Effect::Changed(id)])
    }

    fn chmod(&mut self) -> Option<Step> {
        let (name, id) = self.a_file()?;
        let mode = [0o600, 0o644, 0o640, 0o755][self.dice.below(4) as usize];
        about(id, Call::Chmod(name, mode), Vec::new())
    }

    fn xattr(&mut self) -> Option<Step> {
        let (name, id) = self.a_file()?;
        if self.has_xattr.contains(&id) && self.dice.below(4) == 0 {
            self.has_xattr.retain(|has| *has != id);
            return about(id, Call::RemoveXattr(name), Vec::new());
        }
        self.has_xattr.push(id);
        about(id, Call::SetXattr(name, self.steps.to_string().into()), Vec::new())
    }

    fn mkdir(&mut self) -> Option<Step> {
        let name = self.a_name_below().filter(|name| !self.names.contains_key(name))?;
        self.names.insert(name.clone(), Node::Directory);
        Some(step(Call::Mkdir(name), Vec::new()))
    }

    /// A name of a directory below one of those that are always there.
    fn a_name_below(&mut self) -> Option<String> {
        Some(format!("d{}/s{}", self.dice.below(DIRECTORIES), self.dice.below(BELOW)))
    }

    fn a_directory_below(&mut self) -> Option<String> {
        self.one_of(self.all(|name, node| node == Node::Directory && name.contains('/')))
    }

    /// All names below a directory.
    fn inside(&self, directory: &str) -> Vec<(String, Node)> {
        let from = format!("{directory}/");
        let range = self.names.range::<str, _>((Bound::Included(from.as_str()), Bound::Unbounded));
        range
            .take_while(|(name, _)| name.starts_with(&from))
            .map(|(name, node)| (name.clone(), *node))
            .collect()
    }

    fn rmdir(&mut self) -> Option<Step> {
        let name = self.a_directory_below()?;
        if !self.inside(&name).is_empty() {
            return None;
        }
        self.names.remove(&name);
        Some(step(Call::Rmdir(name.clone()), vec![Effect::Unnamed(name)]))
    }

    fn rename_directory(&mut self) -> Option<Step> {
        let (from, to) = (self.a_directory_below()?, self.a_name_below()?);
        if from == to || !self.inside(&to).is_empty() {
            return None;
        }
        let mut effects = vec![Effect::Unnamed(from.clone())];
        for (name, node) in self.inside(&from) {
            self.names.remove(&name);
            let moved = format!("{to}{}", name.strip_prefix(&from)?);
            effects.push(Effect::Unnamed(name));
            if let Node::File(id) = node {
                effects.push(Effect::Named(id, moved.clone()));
            }
            self.names.insert(moved, node);
        }
        self.names.remove(&from);
        self.names.insert(to.clone(), Node::Directory);
        Some(step(Call::Rename(from, to), effects))
    }

    fn sync(&mut self) -> Option<Step> {
        if self.dice.below(4) == 0 {
            let directory = self.a_directory()?;
            let is_in = |name: &&(String, Node)| !name.0[directory.len() + 1..].contains('/');
            let names = self.inside(&directory).iter().filter(is_in).map(|(name, _)| name.clone()).collect();
            return Some(step(Call::SyncDirectory(directory), vec![Effect::SyncedNames(names)]));
        }
        let (name, id) = self.a_file()?;
        let names = self.names_of(id);
        about(id, Call::SyncFile(name), vec![Effect::SyncedFile(id, names)])
    }
}

fn step(call: Call, effects: Vec<Effect>) -> Step {
    Step { call, effects, file: None }
}

fn about(file: u64, call: Call, effects: Vec<Effect>) -> Option<Step> {
    Some(Step { call, effects, file: Some(file) })
}
