//! The shell commands of the README and the manual work.

use crate::home::TestHome;

/// Returns the blocks of a page that are marked as shell commands as one script, since a reader types them in sequence.
fn script(page: &str) -> String {
    let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = vec!["set -eu".to_owned()];
    let mut is_inside = false;
    for line in text.lines() {
        match line {
            "```sh" => is_inside = true,
            "```" => is_inside = false,
            _ if is_inside => lines.push(line.to_owned()),
            _ => {}
        }
    }
    lines.join("\n")
}

/// Adds a wait for servers, as a user would wait.
fn await_servers(script: &str) -> String {
    let wait = "until grep -q serving server.log; do kill -0 $! || exit 1; sleep 0.05; done";
    let served = script.lines().map(|line| match line.strip_suffix(" &") {
        Some(command) => format!("{command} >server.log 2>&1 &\n{wait}"),
        None => line.to_owned(),
    });
    served.collect::<Vec<_>>().join("\n")
}

#[test]
fn readme_commands_work() {
    let home = TestHome::new();
    // The system chose this port for another listener just now, so it is free.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = script("README.md")
        .replace("wirefs serve shared", &format!("wirefs serve shared --listen tls://127.0.0.1:{port}"))
        .replace("tls://localhost/", &format!("tls://127.0.0.1:{port}/"));
    assert!(script.contains("wirefs mount"), "the README mounts nothing: {script}");
    let script = await_servers(&script);
    let ran = home.run_in_group(home.command("sh").args(["-c", &script]));
    assert_eq!(ran.code, Some(0), "{script}\n{ran:?}");
    assert!(ran.stdout.contains("hello from the mount"), "{ran:?}");
    assert!(!home.is_mounted());
}

#[test]
fn commands_of_the_manual_work() {
    let home = TestHome::new();
    let script = script("docs/MANUAL.md");
    assert!(script.contains("wirefs checkpoint"), "{script}");
    let ran = home.run_in_group(home.command("sh").args(["-c", &script]));
    assert_eq!(ran.code, Some(0), "{script}\n{ran:?}");
    assert!(ran.stdout.contains("one\none\n"), "{ran:?}");
    assert!(!home.is_mounted());
}
