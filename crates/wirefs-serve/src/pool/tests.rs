use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use wirefs_op::message::version::BootId;
use wirefs_server::SessionKey;

use super::super::options::ServeOptions;
use super::{Owner, Pool, Rank, Work};

/// Longer than any successful run.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A worker's report of the work that it has begun. The work ends when the sender is used or dropped.
type Begun = (u64, Sender<()>);

fn worker(pool: Arc<Pool>, begun: Sender<Begun>) -> Box<dyn FnOnce() + Send> {
    Box::new(move || {
        let another = || worker(Arc::clone(&pool), begun.clone());
        pool.work(another, |work| {
            let Work::End(SessionKey(number), _) = work else { unreachable!("the test submits only ends") };
            let (end, ended) = channel();
            begun.send((number, end)).unwrap();
            let _ended = ended.recv();
        });
    })
}

/// Two sessions have two workers each, of 6, and queue one piece of work more. When one piece ends, the other session's
/// share grows, so its work goes first; the queued work of the first session may run then too, and does.
#[test]
fn work_that_became_runnable_beside_other_work_gets_its_own_worker() {
    const BLOCKED: Owner = Owner::Session(SessionKey(1));
    const ACTIVE: Owner = Owner::Session(SessionKey(2));
    let mut options = ServeOptions::new(BootId(1));
    (options.workers_max, options.session_workers_max) = (6, 4);
    let pool = Arc::new(Pool::new(&options));
    let (begun, begins) = channel();
    let submit = |owner, number| {
        let work = Work::End(SessionKey(number), Vec::new());
        pool.submit(owner, Rank::Quick, work, worker(Arc::clone(&pool), begun.clone()));
    };
    let mut running: Vec<Begun> = Vec::new();
    for (owner, number) in [(BLOCKED, 10), (BLOCKED, 11), (ACTIVE, 20), (ACTIVE, 21)] {
        submit(owner, number);
        running.push(begins.recv_timeout(WAIT_MAX).unwrap());
    }
    submit(BLOCKED, 12);
    submit(ACTIVE, 22);
    assert_eq!(pool.threads(), 4, "neither session may have a third worker");

    let (number, end) = running.pop().unwrap();
    assert_eq!(number, 21);
    drop(end);
    let mut next: Vec<Begun> =
        (0..2).map(|_| begins.recv_timeout(WAIT_MAX).expect("runnable work has no worker")).collect();
    next.sort_by_key(|(number, _)| *number);
    assert_eq!([next[0].0, next[1].0], [12, 22]);
    pool.stop();
}
