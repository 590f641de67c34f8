//! A small HTTP/1.1 server for GET: metrics, the page, and its data. One request per connection.

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use wirefs_metrics::Exposition;

use super::Observed;

/// The maximum number of concurrent clients; further ones are closed.
const CLIENTS_MAX: usize = 8;
/// The maximum size of a request, in bytes.
const REQUEST_BYTES_MAX: usize = 8192;
/// How long a client may take to send its request, or to take a part of the response.
const PATIENCE: Duration = Duration::from_secs(5);
/// The wait after a failed accept, as with too many open files.
const RETRY_AFTER: Duration = Duration::from_millis(100);

const PAGE: &str = include_str!("page.html");

/// Starts the thread that accepts clients.
pub(super) fn start(listener: TcpListener, observed: Arc<dyn Observed>) -> io::Result<()> {
    thread::Builder::new().name("wirefs-metrics".into()).spawn(move || accept(&listener, &observed)).map(drop)
}

fn accept(listener: &TcpListener, observed: &Arc<dyn Observed>) {
    let clients = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            thread::sleep(RETRY_AFTER);
            continue;
        };
        if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
            clients.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (observed, count) = (Arc::clone(observed), Arc::clone(&clients));
        let talk = move || {
            // Fails if the client has disconnected.
            let _gone = serve(stream, &*observed);
            count.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("wirefs-metrics-client".into()).spawn(talk).is_err() {
            clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn serve(mut stream: TcpStream, observed: &dyn Observed) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_BYTES_MAX {
        match stream.read(&mut part)? {
            0 => return Ok(()),
            read => request.extend_from_slice(part.get(..read).unwrap_or_default()),
        }
    }
    stream.write_all(&respond(&request, observed))
}

/// Returns the response to a request.
fn respond(request: &[u8], observed: &dyn Observed) -> Vec<u8> {
    let text = String::from_utf8_lossy(request);
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let host = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    if !text.contains("\r\n\r\n") || !target.starts_with('/') {
        return response("400 Bad Request", "text/plain", "this is no HTTP request\n");
    }
    // A page of another site may have its name resolve to this address, and read the response.
    if !host.is_some_and(is_address) {
        return response("403 Forbidden", "text/plain", "use the IP address or localhost in the URL\n");
    }
    if method != "GET" {
        return response("405 Method Not Allowed", "text/plain", "only GET is allowed\n");
    }
    match target.split('?').next().unwrap_or_default() {
        "/metrics" => response("200 OK", Exposition::CONTENT_TYPE, &observed.metrics()),
        "/samples.json" => match serde_json::to_string(&observed.samples()) {
            Ok(json) => response("200 OK", "application/json", &json),
            Err(_) => response("500 Internal Server Error", "text/plain", "no samples\n"),
        },
        "/" => response("200 OK", "text/html; charset=utf-8", PAGE),
        _ => response("404 Not Found", "text/plain", "there are /, /metrics and /samples.json\n"),
    }
}

/// Returns whether a Host header names an IP address or localhost.
fn is_address(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

fn response(status: &str, kind: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::Sample;

    struct Constant;

    impl Observed for Constant {
        fn metrics(&self) -> String {
            "# EOF\n".to_owned()
        }
        fn samples(&self) -> Vec<Sample> {
            Vec::new()
        }
    }

    fn first_line(request: &str) -> String {
        let response = String::from_utf8(respond(request.as_bytes(), &Constant)).unwrap();
        response.lines().next().unwrap().to_owned()
    }

    #[test]
    fn only_get_of_known_paths_succeeds() {
        let get = |target: &str| first_line(&format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:9\r\n\r\n"));
        assert_eq!(
            ["/", "/metrics", "/metrics?x=1", "/samples.json"].map(get),
            ["HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK"]
        );
        assert_eq!(get("/etc/passwd"), "HTTP/1.1 404 Not Found");
        assert_eq!(get("metrics"), "HTTP/1.1 400 Bad Request");
        let request = "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        assert_eq!(first_line(request), "HTTP/1.1 405 Method Not Allowed");
        assert_eq!(first_line("GET / HTTP/1.1\r\nHost: localhost"), "HTTP/1.1 400 Bad Request");
    }

    // S-152
    #[test]
    fn names_of_other_sites_are_refused() {
        let get = |host: &str| first_line(&format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(get("evil.example:9090"), "HTTP/1.1 403 Forbidden");
        assert_eq!(first_line("GET /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 403 Forbidden");
        for host in ["localhost:9090", "127.0.0.1", "[::1]:9090", "10.0.0.1:80"] {
            assert_eq!(get(host), "HTTP/1.1 200 OK", "{host}");
        }
    }

    #[test]
    fn response_has_the_length_of_its_body() {
        let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let response = String::from_utf8(respond(request, &Constant)).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("\r\nContent-Length: 6\r\n"), "{head}");
        assert!(head.contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0"), "{head}");
        assert_eq!(body, "# EOF\n");
    }
}
