//! The thread that reads letters and keeps time.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirefs_echo::together::Input;
use wirefs_echo::together::wire::IDS_MAX;

use super::Commons;
use super::desk::Desk;
use crate::limits::{BEAT, LETTERS_MAX};

/// The longest wait between two looks.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Drives the machine until the store is dropped.
pub(super) fn run(commons: &Arc<Commons>) {
    let mut room = Vec::new();
    let mut greeted: Option<Instant> = None;
    while !commons.is_over() {
        let mut desk = commons.desk();
        for _ in 0..LETTERS_MAX {
            let Ok(Some(packet)) = commons.courier.receive(&mut room) else { break };
            if let Some(letter) = desk.post.open(packet) {
                commons.hear(&mut desk, letter);
            }
        }
        if greeted.is_none_or(|at| at.elapsed() >= BEAT) {
            greeted = Some(Instant::now());
            greet(commons, &mut desk);
        }
        if desk.machine.deadline() <= commons.now() {
            commons.work(&mut desk, Input::Tick);
        }
        let wait = (desk.machine.deadline() - commons.now()).min(PAUSE_MAX);
        drop(desk);
        rest(commons, wait);
    }
}

/// Looks for those who were named, and says what is new of this node.
fn greet(commons: &Commons, desk: &mut Desk) {
    desk.go_by(commons.echo.hosts());
    if let Some(room) = commons.echo.room_now() {
        desk.machine.say_room(room.blocks_free);
    }
    let lost = commons.echo.lost(IDS_MAX);
    commons.ask(desk, &lost);
    commons.have_read(desk);
    let is_lately = |at: &Instant| at.elapsed() < BEAT * 4;
    let met: BTreeSet<Ipv4Addr> = desk
        .post
        .pals()
        .filter(|(id, _)| desk.heard.get(id).is_some_and(is_lately))
        .map(|(_, address)| address.into())
        .collect();
    // One that was met and is silent may have been started anew.
    let known = desk.post.pals().map(|(_, address)| Ipv4Addr::from(address));
    let sought: BTreeSet<Ipv4Addr> = known.chain(desk.named.iter().copied()).collect();
    for address in sought.difference(&met) {
        if let Some(hello) = desk.post.hello() {
            commons.send_to(desk, *address, &hello);
        }
    }
}

/// Waits until a letter comes, the bell rings, or it is time.
fn rest(commons: &Commons, wait: Duration) {
    let Ok(timeout) = Timespec::try_from(wait) else { return };
    let mut all = [PollFd::new(&commons.courier, PollFlags::IN), PollFd::new(&commons.bell, PollFlags::IN)];
    // Interrupted or not: the next round looks for itself.
    let _woken = poll(&mut all, Some(&timeout));
    if all.last().is_some_and(|bell| !bell.revents().is_empty()) {
        let _silent = rustix::io::read(&commons.bell, &mut [0; 8]);
    }
}
