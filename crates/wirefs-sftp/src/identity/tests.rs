use super::*;

fn number(ids: &Identities, path: &str) -> u64 {
    ids.of_names(path.as_bytes().split(|byte| *byte == b'/'))
}

#[test]
fn renamed_directory_keeps_its_number_and_those_below_it() {
    let ids = Identities::default();
    let (dir, file) = (number(&ids, "a"), number(&ids, "a/b/c"));
    ids.moved((ROOT, b"a"), (ROOT, b"z"));
    assert_eq!((number(&ids, "z"), number(&ids, "z/b/c")), (dir, file));
    assert_ne!(number(&ids, "a"), dir, "the next object of the old name is another one");
    assert_ne!(number(&ids, "a/b/c"), file);
    ids.moved((ROOT, b"z"), (ROOT, b"a"));
    assert_eq!(number(&ids, "a/b/c"), file);
}

#[test]
fn removed_name_gets_a_new_number_each_time() {
    let ids = Identities::default();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..100 {
        assert!(seen.insert(number(&ids, "a")));
        ids.removed(ROOT, b"a");
    }
}

#[test]
fn linked_name_has_the_number_of_its_object() {
    let ids = Identities::default();
    let object = number(&ids, "a");
    ids.named(ROOT, b"b", object);
    ids.removed(ROOT, b"a");
    assert_eq!(number(&ids, "b"), object);
}
