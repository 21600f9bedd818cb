//! Front matter: metadata between two lines of dashes at the start of a Markdown source.

/// Front matter, as far as a page uses it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FrontMatter {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) language: Option<String>,
}

/// Splits off the front matter; returns it with the offset of the text after it.
///
/// It is YAML, of which only the scalars of the first level are read. Lines between dashes without keys are Markdown: two rules
/// and a heading.
pub(super) fn split_front_matter(text: &str) -> Option<(FrontMatter, usize)> {
    let start = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut lines = text[start..].split_inclusive('\n');
    let mut end = start;
    let first = lines.next()?;
    if first.trim_end() != "---" || !first.ends_with('\n') {
        return None;
    }
    end += first.len();
    let from = end;
    for line in lines {
        let before = end;
        end += line.len();
        if matches!(line.trim_end(), "---" | "...") {
            let matter = &text[from..before];
            return is_mapping(matter).then(|| (read_mapping(matter), end));
        }
    }
    None
}

/// Whether the lines form a mapping with at least one key.
fn is_mapping(matter: &str) -> bool {
    let mut has_key = false;
    for line in matter.lines() {
        let is_further =
            line.starts_with([' ', '\t', '#', '-', ']', '}', '"']) || line.trim().is_empty();
        match split_key(line) {
            Some(_) => has_key = true,
            None if is_further && (has_key || line.trim().is_empty() || line.starts_with('#')) => {}
            None => return false,
        }
    }
    has_key
}

/// Splits a line of the first level into its key and its value.
fn split_key(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let bare = key.trim_matches(['"', '\'']);
    let is_key = !bare.is_empty()
        && !key.starts_with([' ', '\t', '#', '-'])
        && bare
            .chars()
            .all(|char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | ' '));
    (is_key && (value.is_empty() || value.starts_with([' ', '\t']))).then_some((bare, value.trim()))
}

fn read_mapping(matter: &str) -> FrontMatter {
    let mut front = FrontMatter::default();
    let mut rest = matter;
    while let Some(line) = rest.split_inclusive('\n').next() {
        rest = &rest[line.len()..];
        let Some((key, value)) = split_key(line.trim_end()) else {
            continue;
        };
        let slot = match key.to_ascii_lowercase().as_str() {
            "title" => &mut front.title,
            "description" | "summary" | "abstract" => &mut front.description,
            "lang" | "language" => &mut front.language,
            _ => continue,
        };
        let value = parse_yaml_scalar(value, rest);
        if slot.is_none() && !value.is_empty() {
            *slot = Some(value);
        }
    }
    front.language = front.language.filter(|tag| is_language_tag(tag));
    front
}

/// Reads a scalar into one line: quoted, plain, or a block in the following lines.
fn parse_yaml_scalar(value: &str, following: &str) -> String {
    let continued = || {
        let lines = following.lines();
        let block = lines.take_while(|line| line.is_empty() || line.starts_with([' ', '\t']));
        block
            .map(str::trim)
            .collect::<Vec<_>>()
            .join(" ")
            .trim()
            .to_owned()
    };
    match value.chars().next() {
        Some('>' | '|') => continued(),
        Some('"') => parse_double_quoted(&value[1..]),
        Some('\'') => parse_single_quoted(&value[1..]),
        // Lists, mappings and anchors cannot be shown.
        Some('[' | '{' | '&' | '*' | '!') => String::new(),
        None => parse_plain_scalar(&continued()),
        _ => {
            let plain = value.split(" #").next().unwrap_or_default().trim_end();
            if matches!(plain, "null" | "~") {
                String::new()
            } else {
                plain.to_owned()
            }
        }
    }
}

/// Reads a plain scalar that begins on the next line; empty for a list or a mapping.
fn parse_plain_scalar(value: &str) -> String {
    if value.starts_with('-') || value.contains(": ") {
        String::new()
    } else {
        value.to_owned()
    }
}

fn parse_double_quoted(value: &str) -> String {
    let mut out = String::new();
    let mut chars = value.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => break,
            '\\' => match chars.next() {
                Some('n' | 't' | 'r') => out.push(' '),
                Some(other) => out.push(other),
                None => {}
            },
            char => out.push(char),
        }
    }
    out
}

fn parse_single_quoted(value: &str) -> String {
    let mut out = String::new();
    let mut chars = value.chars().peekable();
    while let Some(char) = chars.next() {
        if char == '\'' && chars.next_if_eq(&'\'').is_none() {
            break;
        }
        out.push(char);
    }
    out
}

/// Whether a text has the form of a language tag: subtags of letters and digits between dashes.
fn is_language_tag(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let first = parts.next().unwrap_or_default();
    let is_part = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    (2..=8).contains(&first.len())
        && first.bytes().all(|byte| byte.is_ascii_alphabetic())
        && parts.all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_taken_and_read() {
        for (text, title, description, language, after) in [
            ("---\ntitle: A trip\n---\nText", "A trip", "", "", "Text"),
            (
                "\u{feff}---\r\ntitle: \"A \\\"trip\\\": to\"\r\nlang: de\r\n---\r\nText",
                "A \"trip\": to",
                "",
                "de",
                "Text",
            ),
            (
                "---\ntitle: 'It''s'\ndescription: >\n  Two\n  lines\ntags:\n  - a\n- b\n...\n",
                "It's",
                "Two lines",
                "",
                "",
            ),
            (
                "---\n# comment\nTitle: x # why\nlanguage: pt-BR\n---",
                "x",
                "",
                "pt-BR",
                "",
            ),
            (
                "---\ntitle:\n  On the next line\nlang: \"no such\"\n---\n",
                "On the next line",
                "",
                "",
                "",
            ),
            (
                "---\ntags: [a, b]\ndate: 2026-01-01\n---\n# T",
                "",
                "",
                "",
                "# T",
            ),
            ("---\ntitle: [a]\nauthor:\n  name: x\n---\n", "", "", "", ""),
            (
                "---\ntitle: <b>\nlang: en\"><script>\n---\n",
                "<b>",
                "",
                "",
                "",
            ),
        ] {
            let (front, end) = split_front_matter(text).unwrap();
            let of = |value: &Option<String>| value.clone().unwrap_or_default();
            assert_eq!(of(&front.title), title, "{text:?}");
            assert_eq!(of(&front.description), description, "{text:?}");
            assert_eq!(of(&front.language), language, "{text:?}");
            assert_eq!(&text[end..], after, "{text:?}");
        }
    }

    #[test]
    fn what_only_looks_like_it_is_markdown() {
        for text in [
            "",
            "---",
            "---\n---\n",
            "---\nFoo\n---\nBar\n---\nBaz",
            "---\ntitle: never ended\n",
            "----\ntitle: x\n----\n",
            " ---\ntitle: x\n---\n",
            "text\n---\ntitle: x\n---\n",
            "---\nA sentence: with a colon, and more.\nAnother one\n---\n",
            "---\nhttps://example.com\n---\n",
        ] {
            assert_eq!(split_front_matter(text), None, "{text:?}");
        }
    }
}
