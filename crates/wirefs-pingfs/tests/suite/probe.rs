use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use wirefs_blocks::store::BlockStore;
use crate::site::*;
#[test]
fn probe() {
    let lab = wirefs_lab::Lab::new("probe").unwrap();
    let [near, far] = ["near", "far"].map(|name| lab.host(name).unwrap());
    let link = lab.link(&near, &far, wirefs_lab::LinkProfile::rtt(Duration::from_millis(40))).unwrap();
    let address = std::net::SocketAddr::from((link.address_b(), 0));
    near.run(|| {
        let store = Arc::new(open(&[address], |_| {}));
        let done = Arc::new(AtomicBool::new(false));
        let (s, d) = (store.clone(), done.clone());
        let writer = std::thread::spawn(move || {
            let mut next = 1;
            let begun = Instant::now();
            let mut longest = Duration::ZERO;
            while begun.elapsed() < Duration::from_secs(16) {
                let blocks: Vec<_> = (next..next + 64).map(|c| (id(c), content(c, 1000))).collect();
                let at = Instant::now();
                let outcome = s.register(&blocks);
                longest = longest.max(at.elapsed());
                if outcome.is_err() { println!("{outcome:?} at {next} after {:?} in {:?}", begun.elapsed(), at.elapsed()); if begun.elapsed() > Duration::from_secs(8) {break} std::thread::sleep(Duration::from_millis(100)); }
                next += 64;
            }
            d.store(true, Ordering::SeqCst);
            println!("longest register {longest:?}, room {:?}", s.room());
        });
        let mut waits = Vec::new();
        while !done.load(Ordering::SeqCst) {
            let at = Instant::now();
            store.root().unwrap();
            waits.push(at.elapsed());
            std::thread::sleep(Duration::from_millis(1));
        }
        waits.sort();
        println!("{} asks, median {:?} p99 {:?} max {:?}", waits.len(), waits[waits.len()/2], waits[waits.len()*99/100], waits[waits.len()-1]);
        writer.join().unwrap();
    }).unwrap();
}
#[test]
fn probe_tells() {
    static SAID: AtomicUsize = AtomicUsize::new(0);
    on_a_host("probe2", || {
        let store = Arc::new(open(&[LOOPBACK], |_| {}));
        keep(&store, 1..=8, 1000);
        assert!(store.before_waiting(|| { SAID.fetch_add(1, Ordering::SeqCst); }));
        let mut times = Vec::new();
        for round in 0..20_000u64 {
            let at = Instant::now();
            check(&store, [round % 8 + 1], 1000);
            times.push(at.elapsed());
            if round % 4 == 0 { std::thread::sleep(Duration::from_micros(300)); }
        }
        times.sort();
        println!("20000 reads of 8 blocks: said {SAID:?}, median {:?} p90 {:?} p99 {:?}", times[10_000], times[18_000], times[19_800]);
    });
}
