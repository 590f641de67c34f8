//! `wirefs why`: what programs wait for, and waited for, in words.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::activity::{Sample, Wait, in_words};
use crate::arguments;
use crate::failure::failure;
use crate::status::span;
use crate::terminal::say;
use crate::top;

/// The number of finished waits that are shown.
const FINISHED_MAX: usize = 10;

/// Prints the waits of a process, of a path, or of all mounts.
pub(crate) fn run(arguments: &arguments::Why) -> Result<()> {
    let samples = top::samples();
    if samples.is_empty() {
        return Err(failure("no mount of this user answers", "`wirefs status` lists mounts"));
    }
    let subject = arguments.subject.as_deref().map(Subject::of).transpose()?;
    let waits: Vec<(&Sample, &Wait)> = samples
        .iter()
        .flat_map(|sample| {
            let finished = sample.activity.finished.iter().rev();
            sample.activity.waiting.iter().chain(finished).map(move |wait| (sample, wait))
        })
        .filter(|(sample, wait)| {
            subject.as_ref().is_none_or(|subject| subject.concerns(&sample.status.mountpoint, wait))
        })
        .collect();
    if arguments.json {
        let waits: Vec<&Wait> = waits.into_iter().map(|(_, wait)| wait).collect();
        say!("{}", serde_json::to_string_pretty(&waits)?);
        return Ok(());
    }
    if waits.is_empty() {
        say!("nothing waits, and none of the last calls took 20 ms");
    }
    let (present, finished): (Vec<_>, Vec<_>) =
        waits.into_iter().partition(|(_, wait)| wait.ended_ago_us.is_none());
    for (sample, wait) in present.into_iter().chain(finished.into_iter().take(FINISHED_MAX)) {
        say!("{}", sentence(&sample.status.mountpoint, wait));
    }
    Ok(())
}

/// The waits to show.
enum Subject {
    /// Those of a process or thread.
    Process(u32),
    /// Those on a path and below.
    Path(std::path::PathBuf),
}

impl Subject {
    fn of(text: &Path) -> Result<Subject> {
        if let Some(process) = text.to_str().and_then(|text| text.parse().ok()) {
            return Ok(Subject::Process(process));
        }
        // A look at the path itself could wait for the same thing, so its links are not resolved.
        Ok(Subject::Path(std::path::absolute(text)?))
    }

    fn concerns(&self, mountpoint: &str, wait: &Wait) -> bool {
        match self {
            Subject::Process(process) => [wait.process, wait.thread].contains(process),
            Subject::Path(path) => Path::new(mountpoint).join(&wait.path).starts_with(path),
        }
    }
}

/// Returns one wait as a sentence.
fn sentence(mountpoint: &str, wait: &Wait) -> String {
    let time = |micros: u64| span(Duration::from_micros(micros));
    let process = if wait.process == 0 { wait.thread } else { wait.process };
    let path = Path::new(mountpoint).join(&wait.path);
    let subject = format!("{} ({process}): {} of {}", wait.program, wait.operation, path.display());
    let mut causes: Vec<(&String, &u64)> = wait.causes_us.iter().collect();
    causes.sort_by_key(|(_, micros)| std::cmp::Reverse(**micros));
    let Some(ago) = wait.ended_ago_us else {
        let cause = causes.first().map_or("an unknown cause", |(cause, _)| in_words(cause));
        let cause = match &wait.request {
            Some(request) if cause == in_words("wire") => {
                format!("the server's reply to {}", request.to_lowercase())
            }
            Some(_) | None => cause.to_owned(),
        };
        return format!("{subject} has waited {} for {cause}", time(wait.waited_us));
    };
    // A part below 1 % explains nothing.
    let parts = causes.into_iter().filter(|(_, micros)| **micros * 100 >= wait.waited_us);
    let parts: Vec<String> =
        parts.map(|(cause, micros)| format!("{} for {}", time(*micros), in_words(cause))).collect();
    format!("{subject} waited {}, {} ago: {}", time(wait.waited_us), time(ago), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn wait(causes: &[(&str, u64)], ended_ago_us: Option<u64>, request: Option<&str>) -> Wait {
        Wait {
            process: 7,
            thread: 8,
            program: "make".to_owned(),
            operation: "open".to_owned(),
            path: "src/main.c".to_owned(),
            waited_us: causes.iter().map(|(_, micros)| micros).sum(),
            ended_ago_us,
            causes_us: causes
                .iter()
                .map(|(name, micros)| ((*name).to_owned(), *micros))
                .collect::<BTreeMap<_, _>>(),
            request: request.map(str::to_owned),
        }
    }

    #[test]
    fn finished_wait_names_its_causes_by_length() {
        let wait = wait(&[("wire", 85_000), ("recall", 900_000), ("local", 10)], Some(2_000_000), None);
        assert_eq!(
            sentence("/m", &wait),
            "make (7): open of /m/src/main.c waited 985 ms, 2 s ago: 900 ms for another client to give back its lease, \
             85 ms for the network"
        );
    }

    #[test]
    fn present_wait_names_the_request_unless_the_cause_says_more() {
        let present = wait(&[("wire", 3_000_000)], None, Some("Get"));
        assert_eq!(
            sentence("/m", &present),
            "make (7): open of /m/src/main.c has waited 3 s for the server's reply to get"
        );
        let recalled = wait(&[("recall", 3_000_000)], None, Some("Put"));
        assert!(sentence("/m", &recalled).ends_with("for another client to give back its lease"));
    }

    #[test]
    fn process_and_thread_select_a_wait() {
        let wait = wait(&[("wire", 1)], None, None);
        let concerns = |id| Subject::Process(id).concerns("/m", &wait);
        assert_eq!([7, 8, 9].map(concerns), [true, true, false]);
    }
}
