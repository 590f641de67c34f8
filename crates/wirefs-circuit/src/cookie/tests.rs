use super::*;

#[test]
fn cookie_is_good_for_its_own_stranger_and_for_a_while() {
    let baker = Baker::new(&[3; 32]);
    let (now, card, source, public) = (Time(0) + COOKIE_LIFE * 5, CardId(1), Address([4; 6]), [5; 32]);
    let cookie = baker.bake(now, card, source, &public);
    assert!(baker.is_good(now, card, source, &public, &cookie));
    assert!(baker.is_good(now + COOKIE_LIFE, card, source, &public, &cookie));
    assert!(!baker.is_good(now + COOKIE_LIFE * 2, card, source, &public, &cookie));
    assert!(!baker.is_good(now, CardId(2), source, &public, &cookie));
    assert!(!baker.is_good(now, card, Address([5; 6]), &public, &cookie));
    assert!(!baker.is_good(now, card, source, &[6; 32], &cookie));
    assert!(!baker.is_good(now, card, source, &public, &NO_COOKIE));
    assert!(!Baker::new(&[4; 32]).is_good(now, card, source, &public, &cookie));
}
