//! Comparison of two whole trees.

use crate::operation::Pattern;
use crate::ops::client::TreeClient;
use crate::ops::reply_outcome::ReplyOutcome;
use crate::ops::request::{IdChoice, RandomRequest, TargetChoice};
use crate::posix::OperationOutcome;
use wirefs_op::TreePath;
use wirefs_op::message::xattr::XattrAction;

/// A difference: the request, the model's outcome, the actual outcome.
pub(super) type ReplyDifference = (String, String, String);

/// Compares all attributes, contents, link targets and extended attributes.
pub(super) fn everything(
    model: &mut TreeClient<'_>,
    other: &mut TreeClient<'_>,
    counts: bool,
) -> Result<(), ReplyDifference> {
    let mut paths = vec![TreePath::root()];
    while let Some(path) = paths.pop() {
        let list_xattrs = RandomRequest::Xattr {
            which: TargetChoice::At(path.clone(), IdChoice::Unspecified),
            action: XattrAction::List,
            name: "",
            flags: 0,
            value: Pattern { len: 0, seed: 0 },
        };
        for request in [RandomRequest::stat(path.clone()), RandomRequest::whole(path.clone()), list_xattrs] {
            let (expected, actual) = (model.perform(&request), other.perform(&request));
            if !expected.allows(&actual, counts) {
                return Err((format!("{request:?}"), format!("{expected:?}"), format!("{actual:?}")));
            }
            paths.extend(children(&path, &expected));
        }
    }
    Ok(())
}

/// Returns the paths of a listing's entries.
fn children(path: &TreePath, actual: &ReplyOutcome) -> Vec<TreePath> {
    match actual {
        ReplyOutcome::Parts(parts) => match parts.first() {
            Some(OperationOutcome::Names(names)) => names.iter().filter_map(|name| path.join(name)).collect(),
            _ => vec![],
        },
        ReplyOutcome::Skipped | ReplyOutcome::ProtocolError(_) => vec![],
    }
}
