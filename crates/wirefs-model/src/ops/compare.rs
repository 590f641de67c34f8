//! Two whole trees, compared.

use crate::operation::Pattern;
use crate::ops::client::Client;
use crate::ops::request::{Ask, Ident, Which};
use crate::ops::told::Told;
use crate::posix::Outcome;
use wirefs_op::TreePath;
use wirefs_op::message::xattr::XattrAction;

/// A difference: where, what the model has, what the other shows.
pub(super) type Difference = (String, String, String);

/// Compares all attributes, contents, targets and extended attributes, from the root down.
pub(super) fn everything(
    model: &mut Client<'_>,
    other: &mut Client<'_>,
    counts: bool,
) -> Result<(), Difference> {
    let mut paths = vec![TreePath::root()];
    while let Some(path) = paths.pop() {
        let list_xattrs = Ask::Xattr {
            which: Which::At(path.clone(), Ident::Whatever),
            action: XattrAction::List,
            name: "",
            flags: 0,
            value: Pattern { len: 0, seed: 0 },
        };
        for ask in [Ask::stat(path.clone()), Ask::whole(path.clone()), list_xattrs] {
            let (expected, told) = (model.perform(&ask), other.perform(&ask));
            if !expected.allows(&told, counts) {
                return Err((format!("{ask:?}"), format!("{expected:?}"), format!("{told:?}")));
            }
            paths.extend(children(&path, &expected));
        }
    }
    Ok(())
}

/// The paths of what a listing names.
fn children(path: &TreePath, told: &Told) -> Vec<TreePath> {
    match told {
        Told::Parts(parts) => match parts.first() {
            Some(Outcome::Names(names)) => names.iter().filter_map(|name| path.join(name)).collect(),
            _ => vec![],
        },
        Told::LeftOut | Told::Nonsense(_) => vec![],
    }
}
