//! `make` of a small program.

use std::process::Command;

use super::{CacheState, WorkPlace, Workload, WorkloadStep, disk, tree};
use crate::error::LabError;

pub(super) static WORKLOAD: Workload = Workload {
    name: "make",
    about: |scale| format!("make of {} C files", scale.units),
    programs: &[("make", "make"), ("gcc", "gcc")],
    prepare,
    steps: &[
        WorkloadStep {
            name: "cold",
            cache: CacheState::Cold,
            run: |place| make(place, "program"),
            bulk: None,
        },
        WorkloadStep {
            name: "no-op",
            cache: CacheState::Warm,
            run: |place| make(place, "program"),
            bulk: None,
        },
        WorkloadStep {
            name: "clean",
            cache: CacheState::Warm,
            run: |place| make(place, "clean"),
            bulk: None,
        },
    ],
};

const MAKEFILE: &str = "\
OBJECTS := $(patsubst %.c,%.o,$(wildcard *.c))
program: $(OBJECTS)
\tgcc -o $@ $(OBJECTS)
%.o: %.c shared.h
\tgcc -c -o $@ $<
clean:
\trm -f program $(OBJECTS)
.PHONY: clean
";

fn prepare(place: &WorkPlace) -> Result<(), LabError> {
    tree::write_old(&place.at("Makefile"), MAKEFILE.as_bytes())?;
    let declared: String = (0..place.scale.units).map(|unit| format!("int unit{unit}(int);\n")).collect();
    tree::write_old(&place.at("shared.h"), declared.as_bytes())?;
    for unit in 0..place.scale.units {
        let text = format!(
            "#include \"shared.h\"\nint unit{unit}(int n) {{ return n < 1 ? {unit} : unit{unit}(n - 1); }}\n"
        );
        tree::write_old(&place.at(format!("unit{unit}.c")), text.as_bytes())?;
    }
    let main = "#include \"shared.h\"\nint main(void) { return unit0(3); }\n";
    tree::write_old(&place.at("main.c"), main.as_bytes())
}

fn make(place: &WorkPlace, target: &str) -> Result<(), LabError> {
    // The caller may be make itself.
    disk::run(
        Command::new("make")
            .env_remove("MAKEFLAGS")
            .env_remove("MAKELEVEL")
            .arg("--silent")
            .arg("-C")
            .arg(&place.tree)
            .arg(target),
    )?;
    Ok(())
}
