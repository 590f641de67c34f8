use super::*;

#[test]
fn anonymous_memory_is_found_in_a_status() {
    let status = "VmRSS:\t    900 kB\nRssAnon:\t     292 kB\nRssFile:\t    1708 kB\n";
    assert_eq!(anonymous_bytes(status), Some(292 * 1024));
    assert_eq!(anonymous_bytes("RssFile:\t 1708 kB\n"), None);
    assert_eq!(anonymous_bytes("RssAnon:\t many kB\n"), None);
}

#[test]
fn memory_of_this_process_is_measured() {
    assert!(resident().is_some_and(|bytes| bytes > 0 && bytes < 1 << 40), "{:?}", resident());
}
