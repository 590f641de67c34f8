use super::*;

#[test]
fn words_are_those_of_the_published_generator() {
    let mut dice = Dice::new(1_234_567);
    let words = [(); 3].map(|()| dice.word());
    assert_eq!(words, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
}

#[test]
fn choices_stay_within_their_bounds() {
    let mut dice = Dice::new(1);
    assert_eq!((dice.below(0), dice.index(0), dice.one_of::<u8>(&[])), (0, 0, 0));
    for _ in 0..1_000 {
        assert!((3..=5).contains(&dice.between(3, 5)) && [2, 4].contains(&dice.one_of(&[2, 4])));
    }
    assert_eq!(dice.bytes(13).len(), 13);
    assert!((0..1_000).filter(|_| dice.chance(1, 4)).count() < 500);
}
