//! Host labels: the name of a project's origin, derived from the names of the project and of its workspace.

use svc_base::names::{SLUG_LENGTH, slugify};

/// Label of a project whose name contains no usable character.
const FALLBACK_NAME: &str = "project";

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
