//! Host labels: the name of a project's origin, derived from the names of the project and of its workspace.

use crate::config::PREVIEW_LABEL_PREFIX;
use svc_base::names::{SLUG_LENGTH, slugify};

/// Label of a project whose name contains no usable character.
const FALLBACK_NAME: &str = "project";

/// Beginnings of the labels of previews and of domains' records.
const RESERVED_PREFIXES: [&str; 2] = [PREVIEW_LABEL_PREFIX, "d-"];
/// Number of the characters that follow there.
const RESERVED_CHARACTERS: usize = 26;

/// Returns the label of a project: slug of its name, `-`, slug of its workspace. It never begins with `xn--`, because
/// runs of hyphens become one hyphen.
pub fn host_label(name: &str, workspace: &str) -> String {
    let name = slugify(name);
    let name = if name.is_empty() {
        FALLBACK_NAME
    } else {
        &name
    };
    truncate(&format!("{name}-{}", slugify(workspace)), SLUG_LENGTH).to_owned()
}

/// Whether a label has the form of those that the service gives out itself: a letter, and 26 letters and digits that stand for an id.
pub fn is_reserved_label(label: &str) -> bool {
    let characters = RESERVED_PREFIXES
        .iter()
        .find_map(|prefix| label.strip_prefix(prefix));
    characters.is_some_and(|rest| {
        rest.len() == RESERVED_CHARACTERS && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

fn truncate(label: &str, length: usize) -> &str {
    label
        .get(..length.min(label.len()))
        .unwrap_or(label)
        .trim_matches('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_the_service_are_no_projects() {
        let (id, short) = ("0".repeat(26), "0".repeat(25));
        for (label, reserved) in [
            (format!("r-{id}"), true),
            (format!("d-{id}"), true),
            (format!("r-{short}"), false),
            (format!("r-{short}-0"), false),
            (format!("s-{id}"), false),
            (format!("xr-{id}"), false),
        ] {
            assert_eq!(is_reserved_label(&label), reserved, "{label}");
        }
    }

    #[test]
    fn labels() {
        let long = "x".repeat(80);
        for (name, workspace, expected) in [
            ("My Shop!", "acme", "my-shop-acme"),
            ("  --  ", "acme", "project-acme"),
            ("日本語", "acme", "project-acme"),
            ("xn--foo", "acme", "xn-foo-acme"),
            ("Café 2", "acme", "caf-2-acme"),
            (&long, "acme", &"x".repeat(63)),
        ] {
            assert_eq!(host_label(name, workspace), expected, "{name}");
        }
    }
}
