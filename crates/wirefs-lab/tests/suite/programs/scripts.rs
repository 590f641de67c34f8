//! The scripts of the programs. Each produces the same output and the same tree wherever it runs.

use super::ProgramTest;
use crate::snapshot::Looks;

/// Makes the programs' output independent of time and user.
pub(super) const ENVIRONMENT: [(&str, &str); 9] = [
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_AUTHOR_NAME", "A"),
    ("GIT_AUTHOR_EMAIL", "a@example.org"),
    ("GIT_COMMITTER_NAME", "C"),
    ("GIT_COMMITTER_EMAIL", "c@example.org"),
    ("GIT_AUTHOR_DATE", "2001-02-03T04:05:06Z"),
];

/// Functions for all scripts: the numbers from 1 to a multiple of `$SCALE`, and a tree with all kinds of files.
pub(super) const PRELUDE: &str = r#"
export GIT_COMMITTER_DATE="$GIT_AUTHOR_DATE"
umask 022
upto() { seq 1 $(($1 * SCALE)); }
blob() { yes "$1" | head -c "$2" || true; }
tree() {
    mkdir -p "$1/deep/er" "$1/empty"
    for i in $(upto 6); do blob "file $i" $((i * 701)) >"$1/deep/file$i"; done
    blob big 300000 >"$1/deep/er/big"
    : >"$1/nothing"
    ln "$1/deep/file1" "$1/hard"
    ln -s deep/er/big "$1/soft"
    ln -s nowhere "$1/dangling"
    printf 'odd' >"$1/$(printf 'a b\n\303\244\377')"
    printf '#!/bin/sh\necho ran\n' >"$1/run" && chmod 755 "$1/run"
    chmod 640 "$1/deep/file2" && chmod 4711 "$1/deep/file3" && chmod 1777 "$1/empty"
    setfattr -n user.colour -v blue "$1/deep/file4"
    find "$1" -exec touch -h -d '2010-11-12 13:14:15.123456789' {} +
}
"#;

const PLAIN: Looks<'static> = Looks { mtimes: false, except: &[] };
const TIMES: Looks<'static> = Looks { mtimes: true, except: &[] };

/// The index has inode numbers and change times, the others the path of the clone.
const GIT_EXCEPT: [&str; 6] = [
    ".git/index",
    "work/.git/config",
    "second/.git/config",
    "second/.git/logs/HEAD",
    "second/.git/logs/refs/heads/main",
    "second/.git/logs/refs/remotes/origin/HEAD",
];

pub(super) fn git() -> ProgramTest {
    let script = r#"
export GIT_CONFIG_COUNT=3
export GIT_CONFIG_KEY_0=pack.threads GIT_CONFIG_VALUE_0=1
export GIT_CONFIG_KEY_1=gc.autoDetach GIT_CONFIG_VALUE_1=false
export GIT_CONFIG_KEY_2=protocol.file.allow GIT_CONFIG_VALUE_2=always
git init -q -b main --bare origin.git
git clone -q ./origin.git work 2>/dev/null
cd work
git checkout -q -b main 2>/dev/null || true
mkdir -p src/a src/b
for i in $(upto 3); do blob "line $i" $((i * 500)) >src/a/f$i; blob "other $i" 90 >src/b/f$i; done
printf '#!/bin/sh\n' >run && chmod +x run && ln -s run walk
git add . && git commit -q -m one
git push -q origin main
git checkout -q -b topic
echo topic >>src/a/f1 && git commit -qam topic
git mv src/b/f2 src/b/moved && git commit -qm moved
git checkout -q main
echo main >src/new && git add . && git commit -qm main
git rebase -q main topic
git checkout -q main && git merge -q --ff-only topic
git stash list
git tag -a v1 -m v1
git gc -q --prune=now
git status --porcelain
git fsck --strict 2>&1
git push -q origin main
cd ..
git clone -q --no-local ./origin.git second
git -C second log --format='%H %s'
git -C second status --porcelain
git -C work ls-files -s
touch work/src/a/f3 && git -C work status --porcelain
"#;
    ProgramTest { name: "git", script, looks: Looks { mtimes: false, except: &GIT_EXCEPT } }
}

pub(super) fn make() -> ProgramTest {
    let script = r#"
mkdir -p src include
echo '#define GREETING "hello"' >include/greeting.h
for i in $(upto 2); do printf '#include <greeting.h>\nconst char *f%s(void) { return GREETING; }\n' $i >src/f$i.c; done
printf '#include <stdio.h>\nconst char *f1(void);\nint main(void) { return puts(f1()) < 0; }\n' >src/main.c
cat >Makefile <<'END'
objects := $(patsubst src/%.c,out/%.o,$(wildcard src/*.c))
out/hello: $(objects)
	cc -o $@ $^
out/%.o: src/%.c include/greeting.h | out
	cc -Iinclude -c -o $@ $<
out:
	mkdir -p $@
clean:
	rm -rf out
.PHONY: clean
END
make -s -j2 && ./out/hello
make -q && echo nothing to do
echo '#define GREETING "changed"' >include/greeting.h
touch -d '+1 hour' include/greeting.h
! make -q && touch include/greeting.h
make -s clean && ls
make -s && ./out/hello && ls out
"#;
    ProgramTest { name: "make", script, looks: PLAIN }
}

pub(super) fn tar() -> ProgramTest {
    let script = r#"
tree original
pack() { tar --sort=name --xattrs --pax-option=exthdr.name=%d/x/%f,delete=atime,delete=ctime "$@"; }
pack -cf ball.tar original
mkdir out
tar --xattrs -xpf ball.tar -C out
pack -C out -cf again.tar original
cmp ball.tar again.tar
rm again.tar
tar -df ball.tar
out/original/run
touch -d @1000000000 ball.tar . out original
"#;
    ProgramTest { name: "tar", script, looks: TIMES }
}

pub(super) fn rsync() -> ProgramTest {
    let script = r#"
tree from
rsync -aHX from/ to/
echo second: "$(rsync -aHXi from/ to/)"
rm from/hard && echo more >>from/deep/file2 && touch -d @1100000000 from/deep/file2
touch -h -d @1100000000 from from/deep
rsync -aHX --delete --itemize-changes from/ to/ | sort
echo last: "$(rsync -aHXi --checksum from/ to/)"
touch -d @1000000000 .
"#;
    ProgramTest { name: "rsync", script, looks: TIMES }
}

pub(super) fn sqlite() -> ProgramTest {
    let script = r#"
fill() {
    echo 'create table t (id integer primary key, text text);'
    for i in $(upto 3); do echo "begin; insert into t (text) values ('row $i'), (hex(zeroblob($i * 300))); commit;"; done
    echo "begin; delete from t; insert into t (text) values ('undone'); rollback;"
    echo "update t set text = text || '!' where id % 2; create index by_text on t (text);"
    echo 'pragma integrity_check; select count(*), sum(length(text)) from t;'
}
fill | sqlite3 rollback.db
(echo 'pragma journal_mode = wal;' && fill) | sqlite3 wal.db
sqlite3 wal.db 'pragma wal_checkpoint(truncate); vacuum; pragma integrity_check;'
for db in rollback wal; do sqlite3 $db.db .dump >$db.sql; done
for process in 1 2 3; do
    for i in $(upto 1); do sqlite3 -cmd '.timeout 60000' rollback.db "insert into t (text) values ('x');"; done &
done
wait
sqlite3 rollback.db "select count(*) from t where text = 'x'; pragma integrity_check;"
ls
"#;
    ProgramTest { name: "sqlite", script, looks: PLAIN }
}

pub(super) fn save() -> ProgramTest {
    let script = r#"
echo old >text && chmod 640 text && setfattr -n user.kept -v yes text
ln -s text link
exec 3<text
for i in $(upto 3); do
    cp -p --attributes-only --preserve=all text .text.swp
    blob "version $i" 70000 >.text.swp
    sync .text.swp && mv -f .text.swp text && sync .
    head -n 1 link && cat <&3
done
# The other way: the old file becomes the backup, and a new one is written in its place.
mv text text~ && (umask 077 && blob last 5000 >text) && chmod --reference=text~ text
sync text && ls -1A && stat -c '%a %s %h' text text~
"#;
    ProgramTest { name: "save", script, looks: PLAIN }
}

pub(super) fn sparse() -> ProgramTest {
    let script = r#"
truncate -s 40M holes
for at in 0 7 23; do printf data | dd of=holes bs=1M seek=$at conv=notrunc status=none; done
cp --sparse=always holes copy
cp --reflink=never copy third
[ $SCALE = 1 ] || { fallocate -l 1M given && fallocate -p -o 65536 -l 65536 given; }
for file in holes copy third; do
    [ $(stat -c %b $file) -lt 2000 ] && echo $file is sparse
done
cmp holes copy && cmp holes third
truncate -s 8388610 third && tail -c 2 third | od -An -tx1
"#;
    ProgramTest { name: "sparse", script, looks: PLAIN }
}

pub(super) fn eight_at_once() -> ProgramTest {
    let script = r#"
mkdir shared
work() {
    mkdir own$1
    for i in $(upto 3); do
        blob "$1 $i" $((i * 3000)) >own$1/f$i
        echo "$1 $i" >>shared/log
        mv own$1/f$i shared/$1-$i
        cat shared/$1-* >own$1/sum
        ln shared/$1-$i own$1/again && rm own$1/again
        ls shared >/dev/null
        if mkdir shared/lock$i 2>/dev/null; then echo won >>shared/won$i; fi
    done
    rm own$1/sum && rmdir own$1
}
for process in 1 2 3 4 5 6 7 8; do work $process & done
wait
sort -o shared/log shared/log
cat shared/won*
"#;
    ProgramTest { name: "eight processes", script, looks: PLAIN }
}
