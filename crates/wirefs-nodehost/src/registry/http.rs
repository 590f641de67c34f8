//! The part of HTTP that a registry needs: a request with its response, and a response that streams changes.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// The time limit of a connection, a request or a response.
const TIME_MAX: Duration = Duration::from_secs(2);
/// The maximum size of a response, in bytes.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// Sends a request, and returns the whole response.
///
/// # Errors
/// The host does not respond, or not with success; then the error has the response's text.
pub(super) fn ask(host: &str, path: &str, body: &str) -> io::Result<String> {
    let mut stream = open(host, path, body)?;
    let mut response = Vec::new();
    let until = Instant::now() + TIME_MAX;
    while read_more(&mut stream, &mut response, until)? > 0 {}
    let end = head_end(&response).ok_or_else(|| wrong("the response has no head"))?;
    let (head, body) = response.split_at(end);
    let body = String::from_utf8_lossy(body).into_owned();
    if is_success(head) { Ok(body) } else { Err(wrong(body.trim())) }
}

/// A streaming response.
pub(super) struct EventStream(TcpStream);

impl EventStream {
    /// Sends a request, and waits until the response has begun and has a first event.
    pub(super) fn begin(host: &str, path: &str, body: &str) -> io::Result<EventStream> {
        let mut stream = open(host, path, body)?;
        let mut head = Vec::new();
        let until = Instant::now() + TIME_MAX;
        loop {
            let count = read_more(&mut stream, &mut head, until)?;
            match head_end(&head) {
                Some(_) if !is_success(&head) => return Err(wrong("the registry does not report changes")),
                Some(end) if end < head.len() => return Ok(EventStream(stream)),
                _ if count == 0 => return Err(wrong("the response ends in its head")),
                Some(_) | None => {}
            }
        }
    }

    /// Waits for an event, at most `patience`. Returns whether one arrived.
    ///
    /// # Errors
    /// The response has ended.
    pub(super) fn has_event(&mut self, patience: Duration) -> io::Result<bool> {
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
        match TcpStream::connect_timeout(&address, TIME_MAX) {
            Ok(mut stream) => {
                stream.set_read_timeout(Some(TIME_MAX))?;
                stream.set_write_timeout(Some(TIME_MAX))?;
                // HTTP/1.0, so that the response is not chunked and ends with the connection.
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

/// Reads more; 0 at the end. The time limit also ends a response that arrives byte by byte.
fn read_more(stream: &mut TcpStream, into: &mut Vec<u8>, until: Instant) -> io::Result<usize> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() || into.len() > RESPONSE_BYTES_MAX {
        return Err(wrong("the response is too long"));
    }
    stream.set_read_timeout(Some(left))?;
    let mut piece = [0; 4096];
    let count = stream.read(&mut piece)?;
    into.extend_from_slice(piece.get(..count).unwrap_or_default());
    Ok(count)
}

/// Returns the offset of a response's body.
fn head_end(response: &[u8]) -> Option<usize> {
    response.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// Parses a status line such as `HTTP/1.0 200 OK`.
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

    /// Answers one request with these bytes. Returns the address, and the request.
    fn answering(response: &'static str) -> (String, std::thread::JoinHandle<String>) {
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
            stream.write_all(response.as_bytes()).unwrap();
            String::from_utf8(asked).unwrap()
        });
        (host, asked)
    }

    #[test]
    fn response_is_the_text_after_the_head() {
        let (host, asked) = answering("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{\"ID\":\"7\"}");
        assert_eq!(ask(&host, "/v3/x", "{}").unwrap(), "{\"ID\":\"7\"}");
        let asked = asked.join().unwrap();
        assert!(
            asked.starts_with("POST /v3/x HTTP/1.0\r\n") && asked.contains("Content-Length: 2\r\n"),
            "{asked}"
        );
    }

    #[test]
    fn response_without_success_is_an_error_with_its_text() {
        let (host, _asked) = answering("HTTP/1.0 404 Not Found\r\n\r\nno lease\n");
        assert_eq!(ask(&host, "/", "{}").unwrap_err().to_string(), "no lease");
        let (host, _asked) = answering("nothing of the kind");
        assert!(ask(&host, "/", "{}").is_err());
        let (host, _asked) = answering("HTTP/1.0 403 Forbidden\r\n\r\nno");
        assert!(EventStream::begin(&host, "/", "{}").is_err());
    }

    #[test]
    fn stream_begins_with_its_first_event_and_ends_with_its_connection() {
        let (host, _asked) = answering("HTTP/1.0 200 OK\r\n\r\n{\"created\":true}");
        let mut stream = EventStream::begin(&host, "/v3/watch", "{}").unwrap();
        assert_eq!(stream.has_event(TIME_MAX).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
