//! Descriptions of languages for the scanner.

use super::{common_languages, rare_languages};

/// A language, or several with the same words.
pub(super) struct Language {
    /// Names of the language in a fence, in lower case. All word lists are separated by spaces.
    pub(super) names: &'static str,
    pub(super) keywords: &'static str,
    pub(super) literals: &'static str,
    pub(super) types: &'static str,
    pub(super) line_comments: &'static [&'static str],
    pub(super) block_comments: &'static [(&'static str, &'static str)],
    /// Kinds of strings; of two with a common start, the longer one comes first.
    pub(super) quotes: &'static [StringSyntax],
    pub(super) flags: &'static [LanguageFeature],
}

/// A kind of string.
pub(super) struct StringSyntax {
    /// The opening and closing mark.
    pub(super) mark: &'static str,
    /// Whether a backslash escapes the next character.
    pub(super) escapes: bool,
    /// Whether the string may span lines.
    pub(super) lines: bool,
}

/// Feature of a language beyond words, comments and strings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LanguageFeature {
    /// `@name` is an attribute, a decorator or a rule.
    AtAttributes,
    /// `\name` is a command.
    BackslashCommands,
    /// A word that begins with a capital is a type.
    CapitalizedTypes,
    /// Keywords are case-insensitive.
    CaseInsensitive,
    /// `name:` at the start of a line is a key.
    ColonKeys,
    /// `$name` is a variable.
    DollarVariables,
    /// `name =` at the start of a line is a key, `[name]` a heading.
    EqualsKeys,
    /// `#` opens a comment anywhere.
    HashCommentsAnywhere,
    /// `#[…]` is an attribute, `name!(…)` a call.
    HashAttributes,
    /// Names may have hyphens.
    HyphenatedNames,
    /// `'name` without a closing quote is a lifetime.
    Lifetimes,
    /// Block comments nest.
    NestedComments,
    /// A line that begins with `#` is a preprocessor directive.
    Preprocessor,
    /// `name:` is a property anywhere.
    ColonProperties,
    /// `r#"…"#` is a string.
    RawStrings,
    /// `/…/` is a regular expression where a value may begin.
    Regexes,
    /// A string before a colon is a key.
    StringKeys,
}

impl Language {
    pub(super) fn has(&self, flag: LanguageFeature) -> bool {
        self.flags.contains(&flag)
    }
}

/// Finds the language that a fence names.
pub(super) fn find_language(name: &str) -> Option<&'static Language> {
    common_languages::LANGUAGES
        .iter()
        .chain(rare_languages::LANGUAGES)
        .find(|language| language.names.split(' ').any(|known| known == name))
}
