use super::*;

const DIRECTORY: TreeNodeId = TreeNodeId(7);

fn name_cache(invalidates_all_names: bool) -> KernelNameCache {
    let name_cache = KernelNameCache::default();
    name_cache.negotiate(invalidates_all_names, true, true);
    name_cache
}

#[test]
fn names_have_no_limit_only_if_all_can_be_invalidated() {
    let free = Bounds { name: Duration::MAX, attributes: Duration::MAX };
    assert_eq!(name_cache(true).bounds(DIRECTORY), free);
    assert_eq!(name_cache(false).bounds(DIRECTORY), Bounds { name: NAME_TIME_MAX, ..free });
}

const NO_TIME: Bounds = Bounds { name: Duration::ZERO, attributes: Duration::ZERO };

#[test]
fn the_first_contention_invalidates_all_names_and_the_next_none() {
    let name_cache = name_cache(true);
    assert!(!name_cache.are_names_untrusted(DIRECTORY));
    let first = name_cache.expire_directories(&[DIRECTORY], Instant::now());
    assert_eq!(first, Expiry { invalidates_all: true, wait: Duration::ZERO });
    assert_eq!(name_cache.bounds(DIRECTORY), NO_TIME);
    assert_ne!(name_cache.bounds(TreeNodeId(8)), NO_TIME);
    assert!(name_cache.are_names_untrusted(DIRECTORY) && !name_cache.are_names_untrusted(TreeNodeId(8)));
    let next = name_cache.expire_directories(&[DIRECTORY], Instant::now());
    assert_eq!(next, Expiry { invalidates_all: false, wait: Duration::ZERO });
    let other = name_cache.expire_directories(&[DIRECTORY, TreeNodeId(8)], Instant::now());
    assert!(other.invalidates_all, "the other directory was not contended yet");
}

#[test]
fn without_inc_epoch_the_validity_of_names_must_pass() {
    let name_cache = name_cache(false);
    let first = name_cache.expire_directories(&[DIRECTORY], Instant::now());
    assert!(!first.invalidates_all);
    assert!(first.wait > Duration::ZERO && first.wait <= NAME_TIME_MAX + CLOCK_SLACK);
    assert_eq!(name_cache.expire_directories(&[DIRECTORY], Instant::now()).wait, Duration::ZERO);
    assert_eq!(name_cache.bounds(DIRECTORY), NO_TIME);
}

#[test]
fn contention_lasts_as_long_as_names_are_invalidated() {
    let name_cache = name_cache(true);
    name_cache.expire_directories(&[DIRECTORY], Instant::now());
    let age = |by: Duration| {
        let at = Instant::now().checked_sub(by).expect("a clock that goes below its start");
        name_cache.contended().insert(DIRECTORY, at);
    };
    age(CONTENDED_FOR / 2);
    assert!(name_cache.are_names_untrusted(DIRECTORY));
    assert!(name_cache.contended()[&DIRECTORY].elapsed() < CONTENDED_FOR / 2, "that counts anew");
    age(CONTENDED_FOR - CONTENDED_MARGIN);
    assert!(!name_cache.are_names_untrusted(DIRECTORY));
    assert_eq!(name_cache.bounds(DIRECTORY), NO_TIME, "answers stop first");
    age(CONTENDED_FOR);
    assert_ne!(name_cache.bounds(DIRECTORY), NO_TIME);
    assert!(name_cache.expire_directories(&[DIRECTORY], Instant::now()).invalidates_all);
}

#[test]
fn contended_directories_are_bounded() {
    let name_cache = name_cache(true);
    let many: Vec<TreeNodeId> = (0..2 * CONTENDED_MAX as u64).map(TreeNodeId).collect();
    name_cache.expire_directories(&many, Instant::now());
    assert_eq!(name_cache.contended().len(), CONTENDED_MAX);
}
