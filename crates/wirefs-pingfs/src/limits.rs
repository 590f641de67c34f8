//! Every limit of the running store, named once.

use std::time::Duration;

/// Packets of a near host that may wait in the receive buffer, unless the user says otherwise.
pub const PARKED_PACKETS: u64 = 4_096;
/// The same of a host that is not near: a tree needs some room before the rate is found, and on a way of few milliseconds.
pub const PARKED_FAR: u64 = 256;
/// Packets of room that are looked for in the network before the first block comes.
pub const GOAL_PACKETS: u64 = 4_096;
/// A host that answers sooner than this is near: the wire to it holds next to nothing, so its packets wait in the buffer.
pub const NEAR: Duration = Duration::from_millis(1);
/// The receive buffer of one host, in bytes, unless the user says otherwise. A limit; nothing is set aside.
pub const BUFFER_BYTES: usize = 64 << 20;
/// The payload of an echo packet at most, in bytes, unless the user says otherwise: what Ethernet passes.
pub const PAYLOAD_BYTES: usize = 1_472;
/// Packets a second to one host at most, unless the user says otherwise.
pub const RATE_MAX: u32 = 10_000;
/// The same to a host of this machine.
pub const RATE_MAX_LOOPBACK: u32 = 1_000_000;
/// Packets a second that the keeper takes from a near host while nobody waits: they keep as well where they are.
pub const IDLE_RATE: u32 = wirefs_echo::limits::DRIVEN_RATE;
/// Nobody has asked for anything for so long: the keeper takes its time with near hosts.
pub const QUIET_AFTER: Duration = Duration::from_secs(1);
/// Packets a second that it takes from a near host then, at least.
pub const QUIET_RATE: u32 = 1_000;
/// For so long a packet waits for its turn then, where that rate is too low for it.
pub const QUIET_LAP_SECS: u64 = 2;
/// And it looks no more often than this.
pub const QUIET_PAUSE_MIN: Duration = Duration::from_millis(50);
/// The keeper looks at near hosts no more often than this.
pub const KEEPER_PAUSE_MIN: Duration = Duration::from_millis(1);
/// For so long the keeper stands back while others turn the circuit, before it looks again.
pub const STAND_BACK: Duration = Duration::from_millis(1);
/// Packets of a near host that whoever waits takes at first, and twice as many each time that what is wanted was not among them.
pub const NEXT_PACKETS: usize = 4;
/// Packets of a near host that are looked into before any is sent on.
pub const GLANCE_PACKETS: usize = 16;
/// For so long a call waits for a lock in silence, as for the keeper, which is done soon: another thread takes as long to wake.
pub const MOMENT: Duration = Duration::from_micros(30);
/// Whoever waits looks up at the latest after this.
pub const WAIT_MAX: Duration = Duration::from_millis(20);
/// The same where several wait, since one takes what wakes another.
pub const SHARED_WAIT_MAX: Duration = Duration::from_millis(1);
/// For so long a block that counts as lost is waited for, should it only be late.
pub const GRACE: Duration = Duration::from_secs(1);
/// For so long a block is waited for whose hosts neither answer nor are found silent.
pub const RETRIEVE_WAIT: Duration = Duration::from_secs(30);
/// For so long a caller waits for room that may still be found.
pub const ROOM_WAIT: Duration = Duration::from_secs(3);
/// For so long it is waited for room where no host answers: it may only have been held up.
pub const SILENCE_WAIT: Duration = Duration::from_secs(20);
/// For so long a host is waited for before the store counts as without hosts.
pub const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// For so long the hosts' rates are looked for before there are blocks.
pub const SEARCH_WAIT: Duration = Duration::from_secs(1);
/// For so long [`sync`](wirefs_blocks::store::BlockStore::sync) waits for what is new to be under way.
pub const SYNC_WAIT: Duration = Duration::from_secs(10);
/// For so long the first echo of a host is waited for.
pub const SURVEY_PATIENCE: Duration = Duration::from_secs(1);
/// Whole payloads that a host is sent before it is used.
pub const SURVEY_PACKETS: usize = 20;
/// The wait between two of them.
pub const SURVEY_STEP: Duration = Duration::from_millis(2);
/// The part of them that may go missing.
pub const SURVEY_LOSS_MAX: f64 = 0.5;
/// For so many round trips a block is kept that came by for a reader: the next one that is needed may just have passed.
pub const RECENT_LAPS: u32 = 2;
/// For so long at least a block is kept that came by for a reader: what the calls take that make up one read of a file.
pub const RECENT_MIN: Duration = Duration::from_millis(1);
/// Contents of blocks that just came by for a reader, kept until their packets are back, in bytes.
pub const RECENT_BYTES_MAX: usize = 256 << 10;
/// A block that has been missing for so long is gone: no packet lives longer (RFC 9293 takes two minutes for it).
pub const GONE_AFTER: Duration = Duration::from_secs(120);
/// Missing blocks of which it is known since when.
pub const DOUBTS_MAX: usize = 65_536;
/// Contents of blocks that passed while somebody waited, in bytes.
pub const OVERHEARD_BYTES_MAX: usize = 1 << 20;
/// Blocks that are fetched at once to be written to a file.
pub const SAVE_BATCH: usize = 256;
/// Marks of when blocks were registered; finer ones are merged.
pub const AGES_MAX: usize = 256;
/// Packets under way to one host that a store without index (`--keep=root`) can tell from replayed ones.
pub const WINDOW_PACKETS: usize = 1 << 20;
/// Turns of the circuit in which a block of another node's may find its place.
pub const ACCEPT_TRIES_MAX: usize = 8;
/// Between two signs of life of a node.
pub const BEAT: Duration = Duration::from_millis(250);
/// What a node does not answer is sent again after so long at least.
pub const RETRY_MIN: Duration = Duration::from_millis(100);
/// The same at most.
pub const RETRY_MAX: Duration = Duration::from_secs(1);
/// A node of which nothing was heard for so long is left out.
pub const DEAD_AFTER: Duration = Duration::from_secs(5);
/// For so long a node looks for others before it makes a tree of its own.
pub const FOUND_WAIT: Duration = Duration::from_secs(3);
/// For so long a node that came waits until it has all blocks of the others.
pub const JOIN_WAIT: Duration = Duration::from_secs(120);
/// For so long a node that goes waits for the others' consent.
pub const LEAVE_WAIT: Duration = Duration::from_secs(15);
/// For so long a change waits for its turn, or for the others to have it.
pub const TURN_WAIT: Duration = Duration::from_secs(60);
/// The same where the change before waited in vain: who comes now has waited behind that one.
pub const TURN_WAIT_CUT_OFF: Duration = Duration::from_secs(5);
/// For so long the others' copies of a block are waited for that is lost here.
pub const HEAL_WAIT: Duration = Duration::from_secs(3);
/// The receive buffer for letters, in bytes.
pub const LETTERS_BYTES: usize = 16 << 20;
/// Letters that are read before others may have the desk.
pub const LETTERS_MAX: usize = 256;
/// Blocks that others were told to let go of: copies of them that come late are not taken.
pub const TOMBS_MAX: usize = 65_536;
/// Blocks let go of that are told with the next root.
pub const FREED_MAX: usize = 65_536;
/// Copies that wait to be sent, by those who asked for them.
pub const COPIES_MAX: usize = 64;
/// Blocks that are fetched at once to be copied to another node.
pub const COPY_BATCH: usize = 64;

const _: () = assert!(BEAT.as_millis() * 10 <= DEAD_AFTER.as_millis(), "the dead were silent for many beats");
const _: () = assert!(RETRY_MAX.as_millis() * 4 < DEAD_AFTER.as_millis(), "what is sent again comes in time");
const _: () =
    assert!(WAIT_MAX.as_millis() < 500, "whoever turns the circuit never looks stopped to the machine");
