//! Checks at each change that a kernel's cache under leases is valid.

use crate::truth::{Fact, Observation};
use crate::world::World;
use wirefs_client::call::TreeNodeId;
use wirefs_op::{FileId, Stat, Time};

impl World {
    /// Checks all kernels after a change.
    pub(crate) fn check_kernels(&mut self, facts: &[Fact]) {
        for index in 0..self.hosts.len() {
            for fact in facts {
                let wrong = match fact {
                    Fact::Name(dir, name) => {
                        self.wrong_name(index, *dir, name).or_else(|| self.wrong_listing(index, *dir, name))
                    }
                    Fact::Object(id) => self.wrong_attributes(index, *id),
                };
                self.counts.checks += 1;
                if let Some(wrong) = wrong {
                    return self.fail(wrong);
                }
            }
        }
    }

    fn wrong_name(&self, index: usize, dir: FileId, name: &[u8]) -> Option<String> {
        let host = self.hosts.get(index).filter(|host| host.takes_leases())?;
        let mut believed = host.kernel.believed_names(host.clock(self.now));
        let (_, _, meaning) = believed.find(|(of, named, _)| *of == dir && *named == name)?;
        let possible = self.truth.meanings(&self.observation(index, self.now), dir, name);
        (!possible.contains(&meaning)).then(|| {
            let name = String::from_utf8_lossy(name);
            format!("kernel {index} believes {name:?} in directory {} to be {meaning:?}; it is one of {possible:?}", dir.ino)
        })
    }

    fn wrong_listing(&self, index: usize, dir: FileId, name: &[u8]) -> Option<String> {
        let host = self.hosts.get(index).filter(|host| host.takes_leases())?;
        let listed = host.kernel.listed(dir, name)?;
        let possible = self.truth.meanings(&self.observation(index, self.now), dir, name);
        (!possible.contains(&listed)).then(|| {
            let name = String::from_utf8_lossy(name);
            format!(
                "kernel {index} lists {name:?} in directory {} as {listed:?}; it is one of {possible:?}",
                dir.ino
            )
        })
    }

    fn wrong_attributes(&self, index: usize, id: FileId) -> Option<String> {
        let host = self.hosts.get(index).filter(|host| host.takes_leases())?;
        let mut believed = host.kernel.believed_attributes(host.clock(self.now));
        let (node, stat) = believed.find(|(_, stat)| stat.id == id)?;
        // A client knows its own changes.
        let observation = Observation { answered_by: Time(0), ..self.observation(index, self.now) };
        let forms = self.truth.forms(&observation, id);
        let is_so = forms.iter().any(|step| {
            step.value.stat.version == stat.version && self.has_only(index, node, stat, &step.value.data)
        });
        (!is_so).then(|| {
            let versions: Vec<u64> = forms.iter().map(|step| step.value.stat.version).collect();
            format!("kernel {index} believes {stat:?}; its version is one of {versions:?}, or its pages are not so")
        })
    }

    /// Returns whether a kernel's pages have these contents.
    fn has_only(&self, index: usize, node: TreeNodeId, stat: &Stat, data: &[u8]) -> bool {
        let Some(host) = self.hosts.get(index) else { return true };
        let pages = host.kernel.pages(node, 0, stat.size, stat.size);
        pages.is_none_or(|pages| pages == data)
    }
}
