use super::*;

/// Held by the tests that take more slabs than the list of free ones has.
static MANY_SLABS: Mutex<()> = Mutex::new(());

fn put(slab: &mut Slab, bytes: &[u8]) {
    slab.room()[..bytes.len()].copy_from_slice(bytes);
    slab.filled(bytes.len());
}

#[test]
fn shared_bytes_are_unchanged_while_the_rest_is_filled() {
    let mut slab = Slab::new();
    put(&mut slab, b"first second");
    assert_eq!(slab.pending(), b"first second");
    let first = slab.share(5);
    slab.skip(1);
    slab.room().fill(0xff);
    let second = slab.share(100);
    assert_eq!((&first[..], &second[..]), (&b"first"[..], &b"second"[..]), "no more than is filled");
    drop(slab);
    assert_eq!(first, "first", "also without the slab");
}

#[test]
fn slab_rewinds_only_without_shares() {
    let mut slab = Slab::new();
    put(&mut slab, b"abc");
    assert!(!slab.rewind(), "something is pending");
    let share = slab.share(2);
    slab.skip(1);
    assert!(!slab.rewind(), "a share exists");
    let part = share.slice(1..);
    drop(share);
    assert!(!slab.rewind(), "a part of a share is one");
    drop(part);
    assert!(slab.rewind());
    assert_eq!(slab.room_bytes(), SLAB_BYTES);
}

#[test]
fn full_slab_has_no_free_space() {
    let mut slab = Slab::new();
    assert_eq!(slab.room().len(), SLAB_BYTES);
    slab.filled(SLAB_BYTES);
    slab.filled(1);
    assert_eq!((slab.room_bytes(), slab.room().len()), (0, 0));
    assert_eq!(slab.share(usize::MAX).len(), SLAB_BYTES);
}

#[test]
fn free_slabs_are_reused_within_the_limit() {
    let _many = MANY_SLABS.lock().unwrap();
    let many: Vec<Slab> = (0..2 * FREE_SLABS_MAX).map(|_| Slab::new()).collect();
    drop(many);
    let kept = free().len();
    assert!(kept > 0 && kept <= FREE_SLABS_MAX, "{kept} are kept");
}

#[test]
fn shares_can_be_sent_between_threads() {
    let mut slab = Slab::new();
    for round in 0..100u8 {
        put(&mut slab, &[round; 1000]);
        let share = slab.share(1000);
        let sum = std::thread::spawn(move || share.iter().map(|byte| usize::from(*byte)).sum::<usize>());
        slab.room().fill(0xee);
        assert_eq!(sum.join().unwrap(), usize::from(round) * 1000);
    }
}

#[test]
fn free_slabs_are_released() {
    // Other tests of this process free a slab each.
    const OTHERS: usize = 4;
    let _many = MANY_SLABS.lock().unwrap();
    let many: Vec<Slab> = (0..FREE_SLABS_MAX).map(|_| Slab::new()).collect();
    drop(many);
    release_free();
    let kept = free().len();
    assert!(kept <= OTHERS, "{kept} are kept");
}
