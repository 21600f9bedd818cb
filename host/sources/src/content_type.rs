//! Content types: one table, from which every list of them is made.
//!
//! To add a type: add a row here, a module and a line in the table of the render guest, and cases to the corpus that guests must
//! pass.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Media type of a source that is shown as text.
const PLAIN_TEXT_TYPE: &str = "text/plain; charset=utf-8";

macro_rules! content_types {
    ($($(#[doc = $about:literal])+ $variant:ident, $name:literal, $label:literal, $phrase:literal, $media:expr, [$($extension:literal),+];)+) => {
        /// Type of a source. Its name, in lower case, is its spelling everywhere: REST, MCP, the database.
        #[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize, utoipa::ToSchema)]
        #[serde(rename_all = "lowercase")]
        pub enum ContentType {
            $($(#[doc = $about])+ $variant,)+
        }

        impl ContentType {
            /// Every type, in the order of the documentation.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Names of all types, in the same order.
            pub const NAMES: [&str; [$($name),+].len()] = [$($name),+];

            /// Returns the name on the wire and in the database.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Returns the name for people.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }

            /// Returns the words for a page of the type, within a sentence.
            #[must_use]
            pub const fn phrase(self) -> &'static str {
                match self { $(Self::$variant => $phrase,)+ }
            }

            /// Returns the media type of a source, which is never HTML's: nothing of a stranger's runs from there.
            #[must_use]
            pub const fn media_type(self) -> &'static str {
                match self { $(Self::$variant => $media,)+ }
            }

            /// Returns the extensions of files of the type, in lower case, the usual one first.
            #[must_use]
            pub const fn extensions(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($extension),+],)+ }
            }
        }
    };
}

content_types! {
    /// A whole page, served byte for byte.
    Html, "html", "HTML", "HTML", PLAIN_TEXT_TYPE, ["html", "htm"];
    /// CommonMark with GitHub's extensions.
    Markdown, "markdown", "Markdown", "Markdown", PLAIN_TEXT_TYPE, ["md", "markdown"];
    /// One diagram.
    Mermaid, "mermaid", "Mermaid", "a Mermaid diagram", PLAIN_TEXT_TYPE, ["mmd", "mermaid"];
    /// One JSON value.
    Json, "json", "JSON", "JSON", "application/json", ["json"];
    /// Comma-separated values, RFC 4180.
    Csv, "csv", "CSV", "a table (CSV)", "text/csv; charset=utf-8", ["csv", "tsv"];
}

impl ContentType {
    /// Finds the type of files with an extension, whatever its case.
    #[must_use]
    pub fn from_extension(extension: &str) -> Option<Self> {
        let extension = extension.to_lowercase();
        let mut all = Self::ALL.into_iter();
        all.find(|one| one.extensions().contains(&extension.as_str()))
    }

    /// Lists something of every type in a sentence: `a, b or c`.
    #[must_use]
    pub fn list(of: impl Fn(Self) -> &'static str) -> String {
        let [rest @ .., last] = Self::ALL.map(of);
        format!("{} or {last}", rest.join(", "))
    }
}

impl fmt::Display for ContentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ContentType {
    type Err = UnknownContentType;

    fn from_str(name: &str) -> Result<Self, UnknownContentType> {
        let mut all = Self::ALL.into_iter();
        all.find(|one| one.as_str() == name)
            .ok_or(UnknownContentType)
    }
}

/// The name is none of [`ContentType::NAMES`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a content type is {}", ContentType::list(ContentType::as_str))]
pub struct UnknownContentType;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_type_is_spelt_the_same_everywhere() {
        for kind in ContentType::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
        }
        assert_eq!("HTML".parse::<ContentType>(), Err(UnknownContentType));
        assert_eq!("".parse::<ContentType>(), Err(UnknownContentType));
    }

    #[test]
    fn an_extension_belongs_to_one_type() {
        for kind in ContentType::ALL {
            for extension in kind.extensions() {
                assert_eq!(ContentType::from_extension(extension), Some(kind));
            }
        }
        assert_eq!(ContentType::from_extension("HTM"), Some(ContentType::Html));
        assert_eq!(ContentType::from_extension("rs"), None);
    }

    #[test]
    fn types_are_listed_in_a_sentence() {
        let names = "html, markdown, mermaid, json or csv";
        assert_eq!(ContentType::list(ContentType::as_str), names);
        assert_eq!(
            UnknownContentType.to_string(),
            format!("a content type is {names}")
        );
    }
}
