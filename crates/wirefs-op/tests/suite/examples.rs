//! The examples in `docs/PROTOCOL.md`: blocks fenced as ```` ```hex NAME ````, with `#` starting a comment.

/// One example.
pub(crate) struct Example {
    /// The name of the block: `Tget`, `entry`, …
    pub(crate) name: String,
    /// The line where the block starts, counted from 1.
    pub(crate) line: usize,
    /// The bytes, including the size word.
    pub(crate) bytes: Vec<u8>,
}

/// The specification's text.
pub(crate) const SPECIFICATION: &str = include_str!("../../../../docs/PROTOCOL.md");

/// Returns all examples in order.
pub(crate) fn examples() -> Vec<Example> {
    let mut examples = Vec::new();
    let mut lines = SPECIFICATION.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(name) = line.strip_prefix("```hex ") else {
            continue;
        };
        let block = lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```"));
        let bytes = block.flat_map(line_bytes).collect();
        examples.push(Example { name: name.trim().into(), line: at + 1, bytes });
    }
    examples
}

fn line_bytes(line: &str) -> Vec<u8> {
    let code = line.split('#').next().unwrap_or_default();
    code.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("two hex digits")).collect()
}
