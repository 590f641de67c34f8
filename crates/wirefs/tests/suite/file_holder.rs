//! A program that holds files open, and starts no other. The test program is unsuitable: when one of its tests starts a
//! program, the child has all open files until it executes, and then closes them. The kernel reports that as `close`
//! (FLUSH) to the mount, and modes that publish at `close` would publish.
//!
//! The test binary itself, started again, so that no other program must be built.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::home::TestHome;

/// The environment variable that selects this role.
const IS_FILE_HOLDER: &str = "WIREFS_TEST_PEN";
/// The prefix of its replies, among the output of the test harness.
const ANSWER_PREFIX: &str = "pen: ";

pub(crate) struct FileHolder {
    program: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    files: usize,
}

/// An open file of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldFile(usize);

impl FileHolder {
    pub(crate) fn new(home: &TestHome) -> FileHolder {
        let mut command = home.command(std::env::current_exe().unwrap().to_str().unwrap());
        command
            .args(["--exact", "file_holder::holds_files_open_when_asked", "--nocapture"])
            .env(IS_FILE_HOLDER, "1");
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (orders, answers) = (program.stdin.take().unwrap(), program.stdout.take().unwrap());
        FileHolder { program, orders, answers: BufReader::new(answers), files: 0 }
    }

    /// Opens a file of the home for reading and writing; creates it if it is missing.
    pub(crate) fn open(&mut self, name: &str) -> HeldFile {
        assert_eq!(self.order(&format!("open {name}")), "");
        self.files += 1;
        HeldFile(self.files - 1)
    }

    /// Writes `count` copies of a byte.
    pub(crate) fn write(&mut self, file: HeldFile, at: u64, byte: u8, count: usize) {
        assert_eq!(self.order(&format!("write {} {at} {byte} {count}", file.0)), "");
    }

    /// Reads the contents: text of one line.
    pub(crate) fn text_of(&mut self, file: HeldFile) -> String {
        self.order(&format!("read {}", file.0))
    }

    pub(crate) fn close(&mut self, file: HeldFile) {
        assert_eq!(self.order(&format!("close {}", file.0)), "");
    }

    fn order(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").unwrap();
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "{order}: the pen is gone");
            if let Some((_, answer)) = line.split_once(ANSWER_PREFIX) {
                return answer.trim_end_matches('\n').to_owned();
            }
        }
    }
}

impl Drop for FileHolder {
    fn drop(&mut self) {
        let _gone = self.program.kill();
        let _reaped = self.program.wait();
    }
}

#[test]
fn holds_files_open_when_asked() {
    if std::env::var_os(IS_FILE_HOLDER).is_none() {
        return;
    }
    let mut files = Vec::new();
    for order in std::io::stdin().lines() {
        let order = order.unwrap();
        println!("\n{ANSWER_PREFIX}{}", carry_out(&order, &mut files).unwrap());
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
