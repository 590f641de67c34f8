use std::collections::BTreeSet;
use std::fs;

use super::*;

const TINY: Scale = Scale {
    files: 12,
    directories: 3,
    listed: 5,
    creates: 4,
    units: 2,
    saves: 2,
    parallel_files: 10,
    random_reads: 5,
    random_bytes: 64 << 10,
    transactions: 3,
    bulk_bytes: 300_000,
};

/// An empty place that goes away with the test.
struct Scratch(WorkPlace);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let root = std::env::temp_dir().join(format!("wirefs-lab-workload-{name}-{}", std::process::id()));
        let place = WorkPlace { tree: root.join("tree"), local: root.join("local"), scale: TINY };
        fs::create_dir_all(&place.tree).unwrap();
        fs::create_dir_all(&place.local).unwrap();
        Scratch(place)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(self.0.tree.parent().unwrap()).ok();
    }
}

#[test]
fn every_workload_runs_on_a_local_disk() {
    for workload in ALL {
        let scratch = Scratch::new(workload.name);
        (workload.prepare)(&scratch.0).unwrap();
        for step in workload.steps {
            (step.run)(&scratch.0).unwrap_or_else(|error| panic!("{} {}: {error}", workload.name, step.name));
        }
    }
}

#[test]
fn names_of_workloads_and_steps_are_unique() {
    let names: BTreeSet<&str> = ALL.iter().map(|workload| workload.name).collect();
    assert_eq!(names.len(), ALL.len());
    for workload in ALL {
        assert!(std::ptr::eq(Workload::named(workload.name).unwrap(), workload));
        for step in workload.steps {
            assert!(std::ptr::eq(workload.step(step.name).unwrap(), step));
        }
        assert!(!(workload.about)(&Scale::FULL).is_empty());
    }
}

#[test]
fn equal_seeds_create_equal_trees() {
    let contents = |name| {
        let scratch = Scratch::new(name);
        tree::make_sources(&scratch.0.tree, &TINY).unwrap();
        fs::read(scratch.0.at("d01/file02.txt")).unwrap()
    };
    assert_eq!(contents("again1"), contents("again2"));
}
