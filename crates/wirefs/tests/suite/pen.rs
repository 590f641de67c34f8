//! A program that holds files open, and starts no other. The test program itself is none: whenever one of its tests starts a
//! program, that one has all its open files for a moment, and closes them when it executes, which the kernel tells a mount as a
//! `close` (FLUSH). Modes that publish at `close` would do so then.
//!
//! It is this very test binary, started again, so that no other program must be built.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::world::World;

/// Tells the program what it is.
const IS_PEN: &str = "WIREFS_TEST_PEN";
/// Its answers begin so, among what the test harness says.
const SAYS: &str = "pen: ";

pub(crate) struct Pen {
    program: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    files: usize,
}

/// A file that a pen has open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held(usize);

impl Pen {
    pub(crate) fn new(world: &World) -> Pen {
        let mut command = world.command(std::env::current_exe().unwrap().to_str().unwrap());
        command.args(["--exact", "pen::holds_files_open_when_asked", "--nocapture"]).env(IS_PEN, "1");
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (orders, answers) = (program.stdin.take().unwrap(), program.stdout.take().unwrap());
        Pen { program, orders, answers: BufReader::new(answers), files: 0 }
    }

    /// Opens a file of the world for reading and writing, made if it is not there.
    pub(crate) fn open(&mut self, name: &str) -> Held {
        assert_eq!(self.order(&format!("open {name}")), "");
        self.files += 1;
        Held(self.files - 1)
    }

    /// Writes so many times the same byte.
    pub(crate) fn write(&mut self, file: Held, at: u64, byte: u8, count: usize) {
        assert_eq!(self.order(&format!("write {} {at} {byte} {count}", file.0)), "");
    }

    /// All that it reads there: text of one line.
    pub(crate) fn text_of(&mut self, file: Held) -> String {
        self.order(&format!("read {}", file.0))
    }

    pub(crate) fn close(&mut self, file: Held) {
        assert_eq!(self.order(&format!("close {}", file.0)), "");
    }

    fn order(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").unwrap();
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "{order}: the pen is gone");
            if let Some((_, answer)) = line.split_once(SAYS) {
                return answer.trim_end_matches('\n').to_owned();
            }
        }
    }
}

impl Drop for Pen {
    fn drop(&mut self) {
        let _gone = self.program.kill();
        let _reaped = self.program.wait();
    }
}

#[test]
fn holds_files_open_when_asked() {
    if std::env::var_os(IS_PEN).is_none() {
        return;
    }
    let mut files = Vec::new();
    for order in std::io::stdin().lines() {
        let order = order.unwrap();
        println!("\n{SAYS}{}", carry_out(&order, &mut files).unwrap());
    }
}

fn carry_out(order: &str, files: &mut Vec<Option<File>>) -> std::io::Result<String> {
    let (verb, rest) = order.split_once(' ').unwrap();
    if verb == "open" {
        let how = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(rest)?;
        files.push(Some(how));
        return Ok(String::new());
    }
    let numbers: Vec<u64> = rest.split(' ').map(|number| number.parse().unwrap()).collect();
    let file = &mut files[numbers[0] as usize];
    let mut text = String::new();
    match (verb, numbers.as_slice()) {
        ("write", [_, at, byte, count]) => {
            file.as_ref().unwrap().write_all_at(&vec![*byte as u8; *count as usize], *at)?;
        }
        ("read", _) => {
            let mut file = file.as_ref().unwrap();
            file.seek(SeekFrom::Start(0))?;
            file.read_to_string(&mut text)?;
        }
        ("close", _) => *file = None,
        other => panic!("{other:?}"),
    }
    Ok(text)
}
