//! Whether what a kernel believes under leases is so, at each moment that something changes.

use crate::truth::{Fact, Glance};
use crate::world::World;
use wirefs_client::call::TreeNodeId;
use wirefs_op::{FileId, Stat, Time};

impl World {
    /// Something has changed: no kernel believes anything else.
    pub(crate) fn check_kernels(&mut self, facts: &[Fact]) {
        for index in 0..self.seats.len() {
            for fact in facts {
                let wrong = match fact {
                    Fact::Name(dir, name) => {
                        self.wrong_name(index, *dir, name).or_else(|| self.wrong_listing(index, *dir, name))
                    }
                    Fact::Object(id) => self.wrong_attributes(index, *id),
                };
                self.record.checks += 1;
                if let Some(wrong) = wrong {
                    return self.fail(wrong);
                }
            }
        }
    }

    fn wrong_name(&self, index: usize, dir: FileId, name: &[u8]) -> Option<String> {
        let seat = self.seats.get(index).filter(|seat| seat.takes_leases())?;
        let mut believed = seat.kernel.believed_names(seat.clock(self.now));
        let (_, _, meaning) = believed.find(|(of, named, _)| *of == dir && *named == name)?;
        let possible = self.truth.meanings(&self.glance(index, self.now), dir, name);
        (!possible.contains(&meaning)).then(|| {
            let name = String::from_utf8_lossy(name);
            format!("kernel {index} believes {name:?} in directory {} to be {meaning:?}; it is one of {possible:?}", dir.ino)
        })
    }

    fn wrong_listing(&self, index: usize, dir: FileId, name: &[u8]) -> Option<String> {
        let seat = self.seats.get(index).filter(|seat| seat.takes_leases())?;
        let listed = seat.kernel.listed(dir, name)?;
        let possible = self.truth.meanings(&self.glance(index, self.now), dir, name);
        (!possible.contains(&listed)).then(|| {
            let name = String::from_utf8_lossy(name);
            format!(
                "kernel {index} lists {name:?} in directory {} as {listed:?}; it is one of {possible:?}",
                dir.ino
            )
        })
    }

    fn wrong_attributes(&self, index: usize, id: FileId) -> Option<String> {
        let seat = self.seats.get(index).filter(|seat| seat.takes_leases())?;
        let mut believed = seat.kernel.believed_attributes(seat.clock(self.now));
        let (node, stat) = believed.find(|(_, stat)| stat.id == id)?;
        // Of what it changed itself it knows that it did.
        let glance = Glance { told_by: Time(0), ..self.glance(index, self.now) };
        let forms = self.truth.forms(&glance, id);
        let is_so = forms.iter().any(|step| {
            step.value.stat.version == stat.version && self.has_only(index, node, stat, &step.value.data)
        });
        (!is_so).then(|| {
            let versions: Vec<u64> = forms.iter().map(|step| step.value.stat.version).collect();
            format!("kernel {index} believes {stat:?}; its version is one of {versions:?}, or its pages are not so")
        })
    }

    /// Whether the pages that a kernel has are of these contents.
    fn has_only(&self, index: usize, node: TreeNodeId, stat: &Stat, data: &[u8]) -> bool {
        let Some(seat) = self.seats.get(index) else { return true };
        let pages = seat.kernel.pages(node, 0, stat.size, stat.size);
        pages.is_none_or(|pages| pages == data)
    }
}
