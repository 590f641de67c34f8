use super::fault;

#[track_caller]
fn assert_fault(subject: &str, part: &str) {
    let found = fault(subject).unwrap_or_default();
    assert!(found.contains(part), "{subject}: {found}");
}

#[test]
fn subjects_name_an_area_and_begin_with_a_verb() {
    for subject in
        ["echo: keep token requests in transit", "client, driver: pass rooms", "docs: fast-forward x"]
    {
        assert_eq!(fault(subject), None, "{subject}");
    }
    assert_fault("Keep token requests", "without an area");
    assert_fault("echo: who asks waits", "\"who\" is no verb");
    assert_fault("echo: keeps token requests", "\"keeps\"");
    assert_fault("echo: fixed a bug", "\"fixed\"");
    assert_fault("echo: Keep it", "\"Keep\"");
    assert_fault(&format!("echo: keep {}", "x".repeat(72)), "of 83 columns");
}
