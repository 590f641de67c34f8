//! Programs on a PingFS of one machine.
//!
//! ```text
//!  node1 ── 10 ms ── hub, which answers pings
//! ```

use std::time::Duration;

use wirefs_lab::LinkProfile;

use super::group::PingFsGroup;
use crate::site::{ProgramResult, wait_for};

/// Capacity for 5 MB: at 10 ms and 10,000 packets per second, 100 packets are in flight, and the rest is in the receive
/// buffer.
const FIVE_MEGABYTES: [&str; 2] = ["--park", "4096"];

/// The timeout of each script, in seconds: half a minute on an idle machine, and much more on a busy one.
const SCRIPT_MAX_SECS: &str = "900";

/// The prefix of each script.
const PRELUDE: &str =
    "export HOME=/nonexistent GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null LC_ALL=C TZ=UTC
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org
unset MAKEFLAGS MAKELEVEL MFLAGS MAKEOVERRIDES
";

/// 100 small files in 10 directories, two commits, and a check of all objects.
const GIT: [(&str, &str); 3] = [
    (GIT_FILES, ""),
    ("cd repository && git add . && git commit -q -m one", ""),
    (GIT_CHECK, "two\none\n100\n"),
];

const GIT_FILES: &str = r#"
git init -q -b main repository && cd repository && git config gc.auto 0
for d in $(seq 10); do
    mkdir d$d
    for i in $(seq 10); do seq $d $((d + i)) >d$d/f$i; done
done
"#;

const GIT_CHECK: &str = r#"
cd repository
echo more >>d1/f1 && git commit -q -a -m two
git log --format=%s
git fsck --strict
git status --porcelain
git ls-files | wc -l
"#;

/// Builds a program from six C files, twice.
const MAKE: &str = r#"
mkdir -p built/src built/include && cd built
echo '#define GREETING "hello"' >include/greeting.h
for i in 1 2 3 4 5; do printf '#include <greeting.h>\nconst char *f%s(void) { return GREETING; }\n' $i >src/f$i.c; done
printf '#include <stdio.h>\nconst char *f5(void);\nint main(void) { return puts(f5()) < 0; }\n' >src/main.c
cat >Makefile <<'END'
objects := $(patsubst src/%.c,out/%.o,$(wildcard src/*.c))
out/hello: $(objects)
	cc -o $@ $^
out/%.o: src/%.c include/greeting.h | out
	cc -Iinclude -c -o $@ $<
out:
	mkdir -p $@
END
make -s && ./out/hello && make -q && echo nothing to do
echo '#define GREETING "changed"' >include/greeting.h && touch -d '+1 hour' include/greeting.h
make -s && ./out/hello
"#;

/// Single transactions with a sync each, and a check of all pages.
const SQLITE: &str = r#"
fill() {
    echo 'create table t (id integer primary key, text text);'
    for i in $(seq 15); do echo "insert into t (text) values (hex(zeroblob(150)));"; done
    echo 'pragma integrity_check; select count(*), sum(length(text)) from t;'
}
fill | sqlite3 data.db
sqlite3 data.db 'pragma integrity_check;'
"#;

/// Sequences of scripts, each with its expected output.
const ALL: [&[(&str, &str)]; 3] =
    [&GIT, &[(MAKE, "hello\nnothing to do\nchanged\n")], &[(SQLITE, "ok\n15|4500\nok\n")]];

/// git, make and sqlite concurrently on a PingFS of 5 MB at 10 ms, without a cache: correct output, and no lost block.
#[test]
fn git_make_and_sqlite_run_on_five_megabytes_in_pings() {
    let group = PingFsGroup::new("programs", 1, &LinkProfile::rtt(Duration::from_millis(10)));
    group.mount_alone(1, &FIVE_MEGABYTES);
    let room = rustix::fs::statvfs(group.at(1, "")).unwrap();
    let bytes = room.f_blocks * room.f_frsize;
    assert!(bytes >= 5_000_000, "{bytes}");
    std::thread::scope(|scope| {
        for scripts in ALL {
            let group = &group;
            scope.spawn(move || {
                for (script, expected) in scripts {
                    let mut command = group.command_within(1, SCRIPT_MAX_SECS, "sh");
                    command.args(["-c", &format!("set -eu\n{PRELUDE}{script}")]).current_dir(group.at(1, ""));
                    assert_eq!(ProgramResult::of(&mut command).succeeds(), *expected);
                }
            });
        }
    });
    // On a busy machine a packet may return after its timeout. Its block counts as lost until then.
    wait_for("all blocks to be in flight", || group.status(1)["blocks_lost"] == 0);
    let status = group.status(1);
    assert_eq!(status["hosts"][0]["dropped"], 0, "{status}");
    group.unmount(1);
}
