use super::*;

const DIRECTORY: TreeNodeId = TreeNodeId(7);

fn beliefs(forgets_names: bool) -> Beliefs {
    let beliefs = Beliefs::default();
    beliefs.agree(forgets_names, true, true);
    beliefs
}

#[test]
fn names_are_told_for_ever_only_where_all_can_be_forgotten() {
    let free = Bounds { name: Duration::MAX, attributes: Duration::MAX };
    assert_eq!(beliefs(true).bounds(DIRECTORY), free);
    assert_eq!(beliefs(false).bounds(DIRECTORY), Bounds { name: NAME_TIME_MAX, ..free });
}

const NO_TIME: Bounds = Bounds { name: Duration::ZERO, attributes: Duration::ZERO };

#[test]
fn the_first_contention_costs_all_names_and_the_next_nothing() {
    let beliefs = beliefs(true);
    assert!(!beliefs.is_distrusted(DIRECTORY));
    let first = beliefs.distrust(&[DIRECTORY], Instant::now());
    assert_eq!(first, Distrust { forgets_all: true, wait: Duration::ZERO });
    assert_eq!(beliefs.bounds(DIRECTORY), NO_TIME);
    assert_ne!(beliefs.bounds(TreeNodeId(8)), NO_TIME);
    assert!(beliefs.is_distrusted(DIRECTORY) && !beliefs.is_distrusted(TreeNodeId(8)));
    let next = beliefs.distrust(&[DIRECTORY], Instant::now());
    assert_eq!(next, Distrust { forgets_all: false, wait: Duration::ZERO });
    let other = beliefs.distrust(&[DIRECTORY, TreeNodeId(8)], Instant::now());
    assert!(other.forgets_all, "the other directory was not contended yet");
}

#[test]
fn where_names_cannot_be_forgotten_the_time_they_were_told_for_passes() {
    let beliefs = beliefs(false);
    let first = beliefs.distrust(&[DIRECTORY], Instant::now());
    assert!(!first.forgets_all);
    assert!(first.wait > Duration::ZERO && first.wait <= NAME_TIME_MAX + CLOCK_SLACK);
    assert_eq!(beliefs.distrust(&[DIRECTORY], Instant::now()).wait, Duration::ZERO);
    assert_eq!(beliefs.bounds(DIRECTORY), NO_TIME);
}

#[test]
fn contention_lasts_for_as_long_as_names_are_taken_back() {
    let beliefs = beliefs(true);
    beliefs.distrust(&[DIRECTORY], Instant::now());
    let age = |by: Duration| {
        let at = Instant::now().checked_sub(by).expect("a clock that goes below its start");
        beliefs.contended().insert(DIRECTORY, at);
    };
    age(CONTENDED_FOR / 2);
    assert!(beliefs.is_distrusted(DIRECTORY));
    assert!(beliefs.contended()[&DIRECTORY].elapsed() < CONTENDED_FOR / 2, "that counts anew");
    age(CONTENDED_FOR - CONTENDED_MARGIN);
    assert!(!beliefs.is_distrusted(DIRECTORY));
    assert_eq!(beliefs.bounds(DIRECTORY), NO_TIME, "answers stop first");
    age(CONTENDED_FOR);
    assert_ne!(beliefs.bounds(DIRECTORY), NO_TIME);
    assert!(beliefs.distrust(&[DIRECTORY], Instant::now()).forgets_all);
}

#[test]
fn contended_directories_are_remembered_within_bounds() {
    let beliefs = beliefs(true);
    let many: Vec<TreeNodeId> = (0..2 * CONTENDED_MAX as u64).map(TreeNodeId).collect();
    beliefs.distrust(&many, Instant::now());
    assert_eq!(beliefs.contended().len(), CONTENDED_MAX);
}
