//! The README's shell commands do what it says.

use crate::world::World;

/// The blocks marked as shell commands, one script: a reader types them one after the other.
fn script(readme: &str) -> String {
    let mut lines = vec!["set -eu".to_owned()];
    let mut is_inside = false;
    for line in readme.lines() {
        match line {
            "```sh" => is_inside = true,
            "```" => is_inside = false,
            _ if is_inside => lines.push(line.to_owned()),
            _ => {}
        }
    }
    lines.join("\n")
}

/// What a person does without being told: waits until the server says that it serves.
fn await_servers(script: &str) -> String {
    let wait = "until grep -q serving server.log; do kill -0 $! || exit 1; sleep 0.05; done";
    let served = script.lines().map(|line| match line.strip_suffix(" &") {
        Some(command) => format!("{command} >server.log 2>&1 &\n{wait}"),
        None => line.to_owned(),
    });
    served.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_commands_of_the_readme_work() {
    let world = World::new();
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    // The system chose the port for another listener a moment ago: it is free.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = script(&readme)
        .replace("wirefs serve shared", &format!("wirefs serve shared --listen tls://127.0.0.1:{port}"))
        .replace("tls://localhost/", &format!("tls://127.0.0.1:{port}/"));
    assert!(script.contains("wirefs mount"), "the README mounts nothing: {script}");
    let script = await_servers(&script);
    let ran = world.run_in_group(world.command("sh").args(["-c", &script]));
    assert_eq!(ran.code, Some(0), "{script}\n{ran:?}");
    assert!(ran.stdout.contains("hello from the mount"), "{ran:?}");
    assert!(!world.is_mounted());
}
