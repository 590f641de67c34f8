use super::*;

#[test]
fn cookie_is_valid_for_its_initiator_until_it_expires() {
    let cookie_key = CookieKey::new(&[3; 32]);
    let (now, card, source, public) = (Time(0) + COOKIE_LIFE * 5, CardId(1), CardAddress([4; 6]), [5; 32]);
    let cookie = cookie_key.cookie(now, card, source, &public);
    assert!(cookie_key.is_valid(now, card, source, &public, &cookie));
    assert!(cookie_key.is_valid(now + COOKIE_LIFE, card, source, &public, &cookie));
    assert!(!cookie_key.is_valid(now + COOKIE_LIFE * 2, card, source, &public, &cookie));
    assert!(!cookie_key.is_valid(now, CardId(2), source, &public, &cookie));
    assert!(!cookie_key.is_valid(now, card, CardAddress([5; 6]), &public, &cookie));
    assert!(!cookie_key.is_valid(now, card, source, &[6; 32], &cookie));
    assert!(!cookie_key.is_valid(now, card, source, &public, &NO_COOKIE));
    assert!(!CookieKey::new(&[4; 32]).is_valid(now, card, source, &public, &cookie));
}
