//! Programs on a file system in pings that one machine has for itself.
//!
//! ```text
//!  node1 ── 10 ms ── hub, which answers pings
//! ```

use std::time::Duration;

use wirefs_lab::LinkProfile;

use super::company::Company;
use crate::site::Ran;

/// Room for 5 MB: at 10 ms and 10,000 packets a second the way holds 100 packets, the rest waits in the receive buffer.
const FIVE_MEGABYTES: [&str; 2] = ["--park", "4096"];

/// No script runs longer, in seconds: half a minute where there is nothing else to do, and as much more as there is.
const SCRIPT_MAX_SECS: &str = "900";

/// What each script begins with.
const PRELUDE: &str =
    "export HOME=/nonexistent GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null LC_ALL=C TZ=UTC
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org
unset MAKEFLAGS MAKELEVEL MFLAGS MAKEOVERRIDES
";

/// 100 small files in 10 directories, two commits, and all objects checked.
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

/// Six C files into a program, twice.
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

/// Transactions of their own, each synced, and the check of all pages.
const SQLITE: &str = r#"
fill() {
    echo 'create table t (id integer primary key, text text);'
    for i in $(seq 15); do echo "insert into t (text) values (hex(zeroblob(150)));"; done
    echo 'pragma integrity_check; select count(*), sum(length(text)) from t;'
}
fill | sqlite3 data.db
sqlite3 data.db 'pragma integrity_check;'
"#;

/// Scripts that run one after the other, each with what it says.
const ALL: [&[(&str, &str)]; 3] =
    [&GIT, &[(MAKE, "hello\nnothing to do\nchanged\n")], &[(SQLITE, "ok\n15|4500\nok\n")]];

/// git, make and sqlite, all at the same time, on 5 MB in pings at 10 ms, nothing of which is kept in memory: they say what they
/// say anywhere, and no block is lost.
#[test]
fn git_make_and_sqlite_run_on_five_megabytes_in_pings() {
    let company = Company::new("programs", 1, &LinkProfile::rtt(Duration::from_millis(10)));
    company.mount_alone(1, &FIVE_MEGABYTES);
    let room = rustix::fs::statvfs(company.at(1, "")).unwrap();
    let bytes = room.f_blocks * room.f_frsize;
    assert!(bytes >= 5_000_000, "{bytes}");
    std::thread::scope(|scope| {
        for scripts in ALL {
            let company = &company;
            scope.spawn(move || {
                for (script, expected) in scripts {
                    let mut command = company.command_within(1, SCRIPT_MAX_SECS, "sh");
                    command
                        .args(["-c", &format!("set -eu\n{PRELUDE}{script}")])
                        .current_dir(company.at(1, ""));
                    assert_eq!(Ran::of(&mut command).succeeds(), *expected);
                }
            });
        }
    });
    let status = company.status(1);
    assert_eq!(status["blocks_lost"], 0, "{status}");
    assert_eq!(status["hosts"][0]["dropped"], 0, "{status}");
    company.unmount(1);
}
