//! Table of role changes.

use super::*;

#[test]
fn roles_are_given_and_taken_up_to_ones_own_and_an_owner_stays() {
    use Role::{Admin, Editor, Owner, Viewer};
    let refused = |own, from, to, owners| match check_change(own, from, to, owners) {
        Ok(()) => "",
        Err(WorkspaceError::AboveOwn(_)) => "above",
        Err(WorkspaceError::LastOwner) => "last",
        Err(error) => panic!("{error}"),
    };
    for (own, from, to, owners, expected) in [
        (Admin, None, Some(Admin), 1, ""),
        (Admin, None, Some(Owner), 1, "above"),
        (Admin, Some(Viewer), Some(Owner), 1, "above"),
        (Admin, Some(Owner), Some(Admin), 2, "above"),
        (Admin, Some(Owner), None, 2, "above"),
        // The error is about the role above, not about the number of owners.
        (Admin, Some(Owner), None, 1, "above"),
        (Admin, Some(Admin), None, 1, ""),
        (Admin, Some(Admin), Some(Editor), 1, ""),
        (Owner, Some(Owner), None, 2, ""),
        (Owner, Some(Owner), Some(Viewer), 2, ""),
        (Owner, Some(Owner), None, 1, "last"),
        (Owner, Some(Owner), Some(Admin), 1, "last"),
        (Owner, Some(Owner), Some(Owner), 1, ""),
        (Owner, None, Some(Owner), 1, ""),
    ] {
        assert_eq!(
            refused(own, from, to, owners),
            expected,
            "{own:?} {from:?} {to:?}"
        );
    }
}
