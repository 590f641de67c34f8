//! Power failures: possible states of the server's disk at any moment, when SQLite writes to a mount whose barriers do
//! not wait.
//!
//! ```text
//!   sqlite3 ── mnt ── wirefs mount ── socket ── server here ── log ── export
//!                                                              |
//!        any moment, any legal part of what was not synced: a directory ── sqlite3: whole? with all that was committed?
//! ```
//! Nothing is replayed: the states are those that a reader at the server finds before the mount reconnects.

mod disk;

use crate::home::{Finished, TestHome, wait_for};
use disk::{Disk, Moment};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use wirefs_carrier::{Address, ListenOptions, Listener};
use wirefs_hostfs::{DetectionMode, HostOptions, HostTree};
use wirefs_op::message::version::BootId;
use wirefs_serve::{ServeOptions, Server};
use wirefs_virtual::Dice;

/// Transactions, over all programs, which run in sequence.
const PROGRAMS: u32 = 6;
const EACH: u32 = 3;
/// Rows of a transaction: more than the program's memory, so that it writes to the database before the commit.
const ROWS: u32 = 60;
/// Moments that are checked.
const CUTS: u64 = 60;

/// Starts a server in this process whose tree keeps a log, and a mount with an exclusive session.
fn mounted(home: &TestHome) -> (Server, Arc<Disk>) {
    let boot = BootId(1);
    let host = HostOptions { boot, detection: DetectionMode::Exclusive, ..HostOptions::default() };
    let disk = Arc::new(Disk::of(HostTree::open(&home.path("export"), host).unwrap()));
    let server = Server::start(Arc::<Disk>::clone(&disk), ServeOptions::new(boot)).unwrap();
    let address = Address::Unix(home.path("socket"));
    server.listen(Listener::bind(&address, &ListenOptions::default()).unwrap()).unwrap();
    crate::journal::exclusive(home);
    (server, disk)
}

fn transactions(journal_mode: &str, rows: std::ops::Range<u32>) -> String {
    let mut script = format!(
        "pragma journal_mode={journal_mode}; pragma synchronous=full; pragma cache_size=8;\n\
         create table if not exists t (n integer primary key);\n\
         create table if not exists u (n integer, fill blob);\n"
    );
    for row in rows {
        script.push_str(&format!(
            "begin; insert into t values ({row}); \
             with recursive c(i) as (select 1 union all select i + 1 from c where i < {ROWS}) \
             insert into u select {row}, randomblob(700) from c; \
             update u set fill = zeroblob(600) where n = {row} - 2; commit;\n"
        ));
    }
    script
}

/// Returns whether the database is intact, and its number of transactions.
fn check_database(home: &TestHome, dir: &Path) -> (String, u32) {
    let sql = format!(
        "pragma integrity_check; \
         select count(*) from (select n, count(*) as rows from u group by n) where rows <> {ROWS}; \
         select count(*) = count(distinct n) and count(*) = ifnull(max(n) + 1, 0) from t;"
    );
    let ask = |sql: &str| Finished::of(home.command("sqlite3").arg("-bail").arg(dir.join("db")).arg(sql));
    if !ask("select 1 from t; select 1 from u;").stderr.is_empty() {
        return ("ok\n0\n1\n".to_owned(), 0);
    }
    let count = ask("select count(*) from t;").succeeds().trim().parse().unwrap();
    (ask(&sql).succeeds(), count)
}

fn cut_at_random_moments(journal_mode: &str, may_be_taken_back: u32) {
    let home = TestHome::new();
    let (server, disk) = mounted(&home);
    let mut committed: Vec<(Moment, u32)> = vec![(disk.now(), 0)];
    for program in 0..PROGRAMS {
        let rows = program * EACH..(program + 1) * EACH;
        let script = transactions(journal_mode, rows.clone());
        Finished::of(home.command("sqlite3").arg("-bail").arg(home.path("mnt/db")).arg(script)).succeeds();
        committed.push((disk.now(), rows.end));
    }
    crate::journal::umount(&home);
    server.stop();
    let log = disk.log();
    assert!(log.barriers() >= 2 * (PROGRAMS * EACH - 2) as usize, "{} barriers", log.barriers());
    let mut dice = Dice::new(u64::from(may_be_taken_back) + 11);
    for cut in 0..CUTS {
        let moment = log.moment(&mut dice);
        let dir = home.path("left");
        fs::create_dir(&dir).unwrap();
        log.leave(moment, &mut dice, &dir);
        let (output, count) = check_database(&home, &dir);
        let is_so = format!("{journal_mode}, cut {cut} at {moment:?}");
        assert_eq!(output, "ok\n0\n1\n", "{is_so}");
        let least = committed.iter().rev().find(|(at, _)| *at <= moment).map_or(0, |(_, rows)| *rows);
        assert!(count + may_be_taken_back >= least, "{is_so}: {count} of {least}");
        fs::remove_dir_all(dir).unwrap();
    }
    wait_for("the end of the server", || disk.is_idle());
}

// S-22 S-23
#[test]
fn database_in_delete_mode_survives_power_failures() {
    // SQLite does not sync the directory after removing its journal.
    cut_at_random_moments("delete", 1);
}

// S-22 S-23
#[test]
fn database_in_truncate_mode_survives_power_failures() {
    cut_at_random_moments("truncate", 0);
}

// S-22 S-23
#[test]
fn database_in_persist_mode_survives_power_failures() {
    cut_at_random_moments("persist", 0);
}
