use super::*;

#[test]
fn modes_parse_as_users_write_them() {
    assert_eq!(Mode::parse("lease").unwrap(), Mode::default());
    assert_eq!(Mode::parse("window").unwrap().window(), Duration::from_secs(1));
    assert_eq!(Mode::parse("window=250ms").unwrap().window(), Duration::from_millis(250));
    assert_eq!(Mode::parse("window=2s").unwrap().to_string(), "window=2000ms");
    assert_eq!(Mode::parse("lazy").unwrap().publish, Publish::Coalesced(1024));
    assert_eq!(Mode::parse("lazy=4k").unwrap().publish.coalesced_bytes(), 4096);
    assert_eq!(Mode::parse("lazy=1m").unwrap().to_string(), "lazy=1024k");
    assert_eq!(Mode::parse("lazy=100").unwrap().to_string(), "lazy=100");
    assert_eq!(Mode::parse("strict").unwrap().window(), Duration::ZERO);
}

#[test]
fn each_mode_round_trips_as_text() {
    for mode in MODES {
        assert_eq!(Mode::parse(mode.name), Ok(mode));
        assert_eq!(Mode::parse(&mode.to_string()), Ok(mode));
    }
}

#[test]
fn invalid_modes_are_explained() {
    let names = "lease, window, session, lazy, commit, direct, strict";
    assert!(Mode::parse("lax").unwrap_err().contains(names));
    assert!(Mode::parse("window=2h").unwrap_err().contains("500ms"));
    for wrong in ["lazy=0", "lazy=17m", "lazy=4q", "lazy=", "lazy=99999999999"] {
        assert!(Mode::parse(wrong).unwrap_err().contains("write 1000, 4k or 1m"), "{wrong}");
    }
    for without in ["lease=1s", "session=1s", "commit=1s", "direct=1s", "strict=1s"] {
        assert!(Mode::parse(without).unwrap_err().contains("takes no value"), "{without}");
    }
}

#[test]
fn a_lease_mode_has_no_time_window() {
    let leasing: Vec<Mode> = MODES.into_iter().filter(Mode::takes_leases).collect();
    assert_eq!(leasing.iter().map(|mode| mode.name).collect::<Vec<_>>(), ["lease", "direct"]);
    assert!(leasing.iter().all(|mode| mode.window().is_zero()));
}

#[test]
fn the_columns_define_each_mode() {
    let that = |is_so: fn(&Mode) -> bool| -> Vec<&str> {
        MODES.iter().filter(|mode| is_so(mode)).map(|mode| mode.name).collect()
    };
    assert_eq!(that(|mode| mode.validates_at_open()), ["session", "strict"]);
    assert_eq!(that(|mode| !mode.publish.is_write_back()), ["direct", "strict"]);
    assert_eq!(that(|mode| mode.publish.coalesced_bytes() > 0), ["lazy"]);
    assert_eq!(that(|mode| mode.publish.is_committed()), ["commit"]);
    assert_eq!(that(|mode| mode.fetch.has_private_copies()), ["session"]);
    assert_eq!(that(|mode| !mode.fetch.is_cached()), ["direct", "strict"]);
    assert_eq!(that(Mode::kernel_caches_listings), ["lease"]);
    assert_eq!(that(Mode::allows_optimism), ["lease"]);
}
