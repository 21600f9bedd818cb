//! Faults of a manifest that is valid TOML, each with its place in the text.

use std::path::Path;

use crate::error::CliFailure;

/// Fault of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ManifestFault {
    /// Name or value at which it stands in the text.
    near: String,
    /// Sentence that says what is wrong, and what to do.
    detail: String,
}

impl ManifestFault {
    pub(super) fn new(near: &str, detail: String) -> Self {
        Self {
            near: near.to_owned(),
            detail,
        }
    }

    /// Failure of the manifest with this text.
    pub(super) fn in_text(&self, path: &Path, text: &str) -> CliFailure {
        let offset = offset_of(text, &self.near);
        CliFailure::in_text("Not valid", &*self.detail, (path, text), offset)
    }
}

/// Finds where a text names something: as the key of a line, else as a value in quotes, else anywhere; 0 where it does not.
pub(super) fn offset_of(text: &str, near: &str) -> usize {
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        let key = line.trim_start().trim_start_matches(['"', '\'']);
        let rest = key.strip_prefix(near);
        let is_key = rest.is_some_and(|rest| {
            let rest = rest.trim_start_matches(['"', '\'']);
            rest.trim_start().starts_with('=')
        });
        if is_key {
            return begin + indent;
        }
        begin += line.len();
    }
    let quoted = text.rfind(&format!("\"{near}\""));
    quoted.or_else(|| text.rfind(near)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_as_a_key_or_as_a_value() {
        let text =
            "project = \"a\"\nhome = \"b\"\n[pages]\n  a = \"b.md\"\n\"c d\" = \"c.md\"\n[env.e]\n";
        for (near, expected) in [
            ("a", text.find("a = ").unwrap()),
            ("b", text.find("\"b\"").unwrap()),
            ("b.md", text.find("\"b.md").unwrap()),
            ("c d", text.find("\"c d").unwrap()),
            ("e", text.rfind('e').unwrap()),
            ("z", 0),
        ] {
            assert_eq!(offset_of(text, near), expected, "{near}");
        }
    }
}
