//! Real programs, and what they work with: an archive, a repository, something to make.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::site::Site;

/// Files of several sizes and modes, links of both kinds; the same in a repository of two commits; and rules that make files out of files.
const PREPARE: &str = r#"set -e
mkdir tree made
for dir in 1 2 3; do
    mkdir -p tree/d$dir/sub
    for file in 1 2 3 4 5; do
        head -c $((file * dir * 900)) /dev/zero | tr '\0' $file >tree/d$dir/f$file
        printf 'text %s of %s\n' $file $dir >made/s$dir$file
    done
    chmod 600 tree/d$dir/f3
    ln tree/d$dir/f1 tree/d$dir/sub/hard
    ln -s ../f2 tree/d$dir/sub/soft
done
tar -cf tree.tar tree
printf 'all: out/all\nout:\n\tmkdir out\nout/%%: s%% | out\n\ttr a-z A-Z <$< >$@.part\n\tmv $@.part $@\n' >made/Makefile
printf 'out/all: $(patsubst s%%,out/%%,$(wildcard s??))\n\tcat $^ >$@.part\n\tmv $@.part $@\n' >>made/Makefile
tar -cf made.tar made
git init -q repo
cp -r tree/d1 repo
git -C repo add .
git -C repo commit -q -m one
cp -r tree/d2 repo
git -C repo add .
git -C repo commit -q -m two
git -C repo repack -a -d -q
"#;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Program {
    Tar,
    Clone,
    Make,
}

/// The input files of the programs.
#[derive(Clone)]
pub(super) struct Materials(PathBuf);

impl Materials {
    pub(super) fn of(site: &Site) -> Materials {
        let dir = site.path("materials");
        std::fs::create_dir(&dir).unwrap();
        let materials = Materials(dir);
        materials.sh(PREPARE, Path::new("/")).unwrap();
        materials
    }

    /// Lets a program make the directory `to`, which is not there.
    pub(super) fn run(&self, program: Program, to: &Path) -> io::Result<()> {
        self.sh(
            match program {
                Program::Tar => "mkdir \"$TO\" && tar -xf tree.tar -C \"$TO\"",
                Program::Clone => "git clone -q \"file://$PWD/repo\" \"$TO\" && test -z \"$(git -C \"$TO\" status --porcelain)\"",
                Program::Make => "mkdir \"$TO\" && tar -xf made.tar -C \"$TO\" && make -s -C \"$TO\"/made",
            },
            to,
        )
    }

    /// Removes what a program made, or a part of it.
    pub(super) fn clear(&self, to: &Path) -> io::Result<()> {
        self.sh("rm -rf \"$TO\"", to)
    }

    fn sh(&self, script: &str, to: &Path) -> io::Result<()> {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(&self.0).stdin(Stdio::null()).env("TO", to);
        command.env("HOME", &self.0).env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "kills").env(format!("GIT_{who}_EMAIL"), "kills");
            command.env(format!("GIT_{who}_DATE"), "1700000000 +0000");
        }
        let ran = command.output()?;
        if !ran.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&ran.stderr).into_owned()));
        }
        Ok(())
    }
}
