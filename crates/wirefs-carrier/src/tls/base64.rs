//! Base64 with padding (RFC 4648), for keys and fingerprints.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes with padding.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for index_in_group in 0..4 {
            let index = (bits >> (18 - 6 * index_in_group) & 63) as usize;
            let digit = ALPHABET.get(index).copied().unwrap_or(b'=');
            text.push(if index_in_group <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// Decodes; `None` unless the text is exactly the output of [`encode`].
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in digits.as_bytes().chunks(4) {
        let mut bits = 0u32;
        for digit in chunk {
            bits = bits << 6 | u32::try_from(ALPHABET.iter().position(|letter| letter == digit)?).ok()?;
        }
        bits <<= 6 * (4 - chunk.len());
        let [_, decoded @ ..] = bits.to_be_bytes();
        bytes.extend_from_slice(decoded.get(..chunk.len() * 3 / 4)?);
    }
    // Exactly one text per value: wrong padding, stray bits and a single trailing digit are rejected.
    (encode(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_vectors_of_rfc_4648_round_trip() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), plain.as_bytes());
        }
    }

    #[test]
    fn second_encoding_of_a_value_is_rejected() {
        for text in ["Zg=", "Zg", "Zh==", "Zm9v=", "Z", "Zm 9", "Zm9v\n", "===="] {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }
}
