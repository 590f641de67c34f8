//! Rejected writes grouped by file: a program that writes a large file leaves thousands.

use wirefs_mount::QuarantinedChange;

/// Consecutive writes to one file of one mount that were rejected for the same reason; or one other change.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) first: &'a QuarantinedChange,
    last: &'a QuarantinedChange,
    changes: u64,
    /// The byte ranges, as far as known.
    ranges: Vec<(u64, u64)>,
}

/// Returns the changes in order, with the writes to a file grouped.
pub(super) fn groups(kept: &[QuarantinedChange]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for change in kept {
        let range = plain_write(change);
        // Other changes may be between two writes to a file.
        let group = range.and_then(|range| {
            let found = groups.iter_mut().rev().find(|group| group.takes(change))?;
            Some((found, range))
        });
        match group {
            Some((group, range)) => {
                group.last = change;
                group.changes += 1;
                add(&mut group.ranges, range);
            }
            None => groups.push(Group {
                first: change,
                last: change,
                changes: 1,
                ranges: range.into_iter().collect(),
            }),
        }
    }
    groups
}

/// Returns the range of a change that is only a write.
fn plain_write(change: &QuarantinedChange) -> Option<(u64, u64)> {
    let start =
        change.offset().filter(|_| change.what.starts_with("write ") && !change.what.contains(", "))?;
    Some((start, start.saturating_add(change.bytes)))
}

/// Adds a range; merges adjacent ones.
fn add(ranges: &mut Vec<(u64, u64)>, (start, end): (u64, u64)) {
    let (mut start, mut end) = (start, end);
    ranges.retain(|&(from, to)| {
        let touches = from <= end && start <= to;
        if touches {
            (start, end) = (start.min(from), end.max(to));
        }
        !touches
    });
    let at = ranges.partition_point(|&(from, _)| from < start);
    ranges.insert(at, (start, end));
}

impl Group<'_> {
    fn takes(&self, change: &QuarantinedChange) -> bool {
        let first = self.first;
        !self.ranges.is_empty()
            && (first.session(), &first.source, &first.path, &first.why)
                == (change.session(), &change.source, &change.path, &change.why)
    }

    /// Returns the text line.
    pub(super) fn line(&self) -> String {
        let QuarantinedChange { id, source, path, what, why, .. } = self.first;
        if self.changes == 1 {
            return format!("{id}  {source} {path}: {what}: {why}");
        }
        let ranges = match self.ranges.as_slice() {
            [(start, end)] => format!("bytes {start} to {end}"),
            ranges => {
                let bytes: u64 = ranges.iter().map(|(start, end)| end - start).sum();
                let (start, end) =
                    (ranges.first().map_or(0, |range| range.0), ranges.last().map_or(0, |range| range.1));
                format!("{bytes} bytes in {} ranges from {start} to {end}", ranges.len())
            }
        };
        format!("{id} to {}  {source} {path}: {} writes, {ranges}: {why}", self.last.number, self.changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        let mut ranges = Vec::new();
        for range in [(0, 10), (20, 30), (10, 12), (5, 7)] {
            add(&mut ranges, range);
        }
        assert_eq!(ranges, [(0, 12), (20, 30)]);
        add(&mut ranges, (12, 20));
        assert_eq!(ranges, [(0, 30)]);
    }
}
