//! Edits of texts: each finds a text exactly as often as it says, and all are made or none.

use super::model::{Edit, RevisionError};

/// Refuses edits that take more than so many milliseconds of processor time.
pub(super) fn too_long(millis: u64) -> RevisionError {
    RevisionError::Edit(format!(
        "The edits take more than {millis} ms of processor time, which is the most: send fewer, or the whole source as `content`. Nothing was changed."
    ))
}

/// Applies edits in order, while `may_go_on` says so. The text of each must occur exactly as often as the edit states.
pub(super) fn apply_in_order(
    mut text: String,
    edits: &[Edit],
    most: usize,
    may_go_on: impl Fn() -> Result<(), RevisionError>,
) -> Result<String, RevisionError> {
    for (index, edit) in edits.iter().enumerate() {
        may_go_on()?;
        text = apply_edit(&text, edit, &format!("edits[{index}]"), most)?;
    }
    if text.is_empty() {
        return Err(RevisionError::Edit(
            "The edits leave nothing: a page has some content. Nothing was changed.".to_owned(),
        ));
    }
    Ok(text)
}

/// Applies one edit, which errors call `name`, to a text that may then have `most` bytes.
pub(super) fn apply_edit(
    text: &str,
    edit: &Edit,
    name: &str,
    most: usize,
) -> Result<String, RevisionError> {
    let wanted = edit.count.unwrap_or(1);
    let found = text.matches(edit.find.as_str()).count();
    if u64::try_from(found).unwrap_or(u64::MAX) != wanted {
        return Err(RevisionError::Edit(format!(
            "`{name}`: `find` occurs {found} times, not {wanted}: copy it from the stored source with enough around it, or set `count`. Nothing was changed."
        )));
    }
    let grown = text.len() - found * edit.find.len() + found.saturating_mul(edit.replace.len());
    match grown > most {
        true => Err(RevisionError::TooLarge(grown)),
        false => Ok(text.replace(&edit.find, &edit.replace)),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn edit(find: &str, replace: &str, count: Option<u64>) -> Edit {
        Edit {
            find: find.into(),
            replace: replace.into(),
            count,
        }
    }

    #[test]
    fn edits_end_when_they_may_not_go_on() {
        let left = Cell::new(1);
        let may_go_on = || match left.replace(0) {
            0 => Err(too_long(7)),
            _ => Ok(()),
        };
        // The second would be refused for what it finds.
        let edits = [edit("a", "b", None), edit("a", "b", None)];
        let ended = apply_in_order("a".into(), &edits, 9, may_go_on).unwrap_err();
        assert!(ended.to_string().contains("7 ms"), "{ended}");
    }

    #[test]
    fn edits_apply_in_order_or_not_at_all() {
        let edits = [edit("a", "b", None), edit("b", "c", Some(2))];
        assert_eq!(
            apply_in_order("a b".into(), &edits, 10, || Ok(())).unwrap(),
            "c c"
        );
        let refused = apply_in_order("a a".into(), &[edit("a", "b", None)], 10, || Ok(()))
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("edits[0]") && refused.contains("occurs 2 times"),
            "{refused}"
        );
        let refused = apply_in_order("x".into(), &[edit("a", "b", None)], 10, || Ok(()))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("occurs 0 times"), "{refused}");
        let nothing =
            apply_in_order("x".into(), &[edit("x", "", None)], 10, || Ok(())).unwrap_err();
        assert!(nothing.to_string().contains("leave nothing"), "{nothing}");
        let large = apply_in_order("aa".into(), &[edit("a", "12345", Some(2))], 9, || Ok(()));
        assert!(matches!(large, Err(RevisionError::TooLarge(10))));
    }
}
