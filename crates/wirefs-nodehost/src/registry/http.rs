//! As much of HTTP as a registry takes: a question and its answer, and an answer that goes on.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How long a connection, a question or an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of an answer, at most.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Asks, and waits for the whole answer.
///
/// # Errors
/// Nobody answers, or not with success: then the text is the answer's.
pub(super) fn ask(host: &str, path: &str, body: &str) -> io::Result<String> {
    let mut stream = open(host, path, body)?;
    let mut answer = Vec::new();
    let until = Instant::now() + PATIENCE;
    while read_more(&mut stream, &mut answer, until)? > 0 {}
    let end = head_end(&answer).ok_or_else(|| wrong("the answer has no head"))?;
    let (head, body) = answer.split_at(end);
    let body = String::from_utf8_lossy(body).into_owned();
    if is_success(head) { Ok(body) } else { Err(wrong(body.trim())) }
}

/// An answer that goes on for as long as there is something to tell.
pub(super) struct Telling(TcpStream);

impl Telling {
    /// Asks, and waits until the answer has begun and something was told.
    pub(super) fn begin(host: &str, path: &str, body: &str) -> io::Result<Telling> {
        let mut stream = open(host, path, body)?;
        let mut head = Vec::new();
        let until = Instant::now() + PATIENCE;
        loop {
            let count = read_more(&mut stream, &mut head, until)?;
            match head_end(&head) {
                Some(_) if !is_success(&head) => return Err(wrong("the registry does not tell of changes")),
                Some(end) if end < head.len() => return Ok(Telling(stream)),
                _ if count == 0 => return Err(wrong("the answer ends in its head")),
                Some(_) | None => {}
            }
        }
    }

    /// Whether something was told within this time.
    ///
    /// # Errors
    /// Nothing more will be.
    pub(super) fn has_news(&mut self, patience: Duration) -> io::Result<bool> {
        self.0.set_read_timeout(Some(patience))?;
        match self.0.read(&mut [0; 4096]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

fn open(host: &str, path: &str, body: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(mut stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                // Of the older version, so that the answer comes as it is and ends with the connection.
                let length = body.len();
                write!(
                    stream,
                    "POST {path} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\n\
                     Content-Length: {length}\r\n\r\n{body}"
                )?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Reads some more; 0 at the end. Who drips byte by byte holds up nobody.
fn read_more(stream: &mut TcpStream, into: &mut Vec<u8>, until: Instant) -> io::Result<usize> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() || into.len() > ANSWER_BYTES_MAX {
        return Err(wrong("the answer is too long"));
    }
    stream.set_read_timeout(Some(left))?;
    let mut piece = [0; 4096];
    let count = stream.read(&mut piece)?;
    into.extend_from_slice(piece.get(..count).unwrap_or_default());
    Ok(count)
}

/// Where the body of an answer begins.
fn head_end(answer: &[u8]) -> Option<usize> {
    answer.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// `HTTP/1.0 200 OK`.
fn is_success(head: &[u8]) -> bool {
    head.split(|byte| *byte == b' ').nth(1).is_some_and(|code| code == b"200")
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Answers one question with these bytes; gives where, and what was asked.
    fn answering(answer: &'static str) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let asked = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            let mut piece = [0; 512];
            while !asked.ends_with(b"{}") {
                let count = stream.read(&mut piece).unwrap();
                asked.extend_from_slice(&piece[..count]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(asked).unwrap()
        });
        (host, asked)
    }

    #[test]
    fn an_answer_is_what_stands_behind_its_head() {
        let (host, asked) = answering("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{\"ID\":\"7\"}");
        assert_eq!(ask(&host, "/v3/x", "{}").unwrap(), "{\"ID\":\"7\"}");
        let asked = asked.join().unwrap();
        assert!(
            asked.starts_with("POST /v3/x HTTP/1.0\r\n") && asked.contains("Content-Length: 2\r\n"),
            "{asked}"
        );
    }

    #[test]
    fn an_answer_without_success_is_an_error_with_its_text() {
        let (host, _asked) = answering("HTTP/1.0 404 Not Found\r\n\r\nno lease\n");
        assert_eq!(ask(&host, "/", "{}").unwrap_err().to_string(), "no lease");
        let (host, _asked) = answering("nothing of the kind");
        assert!(ask(&host, "/", "{}").is_err());
        let (host, _asked) = answering("HTTP/1.0 403 Forbidden\r\n\r\nno");
        assert!(Telling::begin(&host, "/", "{}").is_err());
    }

    #[test]
    fn a_telling_begins_with_its_first_word_and_ends_with_its_connection() {
        let (host, _asked) = answering("HTTP/1.0 200 OK\r\n\r\n{\"created\":true}");
        let mut telling = Telling::begin(&host, "/v3/watch", "{}").unwrap();
        assert_eq!(telling.has_news(PATIENCE).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
