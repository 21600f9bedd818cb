//! Patterns of paths: texts, placeholders for whole segments, and `*` for the rest, or for what is before an ending.

use super::{PatternPart, Reason, excerpt};

/// Name by which targets call what `*` stands for.
const REST_NAME: &str = "splat";

/// Most placeholders of a pattern, with its `*`.
const MAX_CAPTURES: usize = 16;

/// Place of `*` in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StarPlace {
    /// At the end, as targets name what it stands for.
    End,
    /// Anywhere, with a text after it or none.
    Anywhere,
}

/// A pattern of paths.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    /// Parts in their order, without the slash at the begin.
    pub(super) parts: Vec<PatternPart>,
    /// Names of the captures, in their order.
    names: Vec<String>,
}

impl Pattern {
    /// Reads a pattern.
    pub(super) fn parse(text: &str, star: StarPlace) -> Result<Self, Reason> {
        let path = path_of(text)?;
        let (path, ending) = match path.split_once('*') {
            Some((path, ending)) => (path, Some(ending)),
            None => (path, None),
        };
        let has_rest = ending.is_some();
        let ending = ending.unwrap_or_default();
        match star {
            StarPlace::End if !ending.is_empty() => return Err("`*` stands once, at the end of a path: write a placeholder such as `:name` for a segment before it.".into()),
            StarPlace::Anywhere if ending.contains('*') => return Err("`*` stands once in a path: write a rule for each of its endings.".into()),
            StarPlace::End | StarPlace::Anywhere => {}
        }
        let mut pattern = Self::default();
        let mut literal = String::new();
        let mut segments = path.split('/').peekable();
        while let Some(segment) = segments.next() {
            let is_last = segments.peek().is_none();
            match segment.strip_prefix(':') {
                Some(name) if is_last && has_rest => {
                    return Err(format!(
                        "The placeholder `:{}` is a whole segment: write a slash before `*`.",
                        excerpt(name)
                    )
                    .into());
                }
                Some(name) => {
                    pattern.add_text(&mut literal);
                    pattern.add_placeholder(name)?;
                }
                None if segment.is_empty() && !is_last => {
                    return Err("The path has an empty segment: write one slash.".into());
                }
                None => literal.push_str(&decode_segment(segment, is_last && has_rest)?),
            }
            if !is_last {
                literal.push('/');
            }
        }
        pattern.add_text(&mut literal);
        if has_rest {
            pattern.add_capture(PatternPart::Rest, REST_NAME)?;
            pattern.add_ending(ending)?;
        }
        Ok(pattern)
    }

    /// Adds the text after `*`, which has no placeholders: what is before it has one length then.
    fn add_ending(&mut self, ending: &str) -> Result<(), Reason> {
        let mut literal = String::new();
        let last = ending.matches('/').count();
        for (number, segment) in ending.split('/').enumerate() {
            if segment.starts_with(':') {
                return Err("A placeholder stands before `*`: write a text after it.".into());
            }
            if number > 0 {
                literal.push('/');
            }
            if segment.is_empty() && (1..last).contains(&number) {
                return Err("The path has an empty segment: write one slash.".into());
            }
            literal.push_str(&decode_segment(segment, number == 0)?);
        }
        self.add_text(&mut literal);
        Ok(())
    }

    /// Returns the number of the capture with a name.
    pub(super) fn capture(&self, name: &str) -> Option<u32> {
        let number = self.names.iter().position(|known| known == name)?;
        u32::try_from(number).ok()
    }

    fn add_text(&mut self, literal: &mut String) {
        if !literal.is_empty() {
            self.parts.push(PatternPart::Text(std::mem::take(literal)));
        }
    }

    fn add_placeholder(&mut self, name: &str) -> Result<(), Reason> {
        if name.is_empty() || name_length(name) != name.len() {
            return Err(format!("`:{}` is no placeholder: its name is a letter and then letters, digits and `_`, and a colon itself is %3A.", excerpt(name)).into());
        }
        if name == REST_NAME {
            return Err(
                "`:splat` is what `*` stands for: call the placeholder by another name.".into(),
            );
        }
        if self.capture(name).is_some() {
            return Err(format!(
                "The path has the placeholder `:{}` twice: give one another name.",
                excerpt(name)
            )
            .into());
        }
        self.add_capture(PatternPart::Placeholder, name)
    }

    fn add_capture(&mut self, part: PatternPart, name: &str) -> Result<(), Reason> {
        if self.names.len() == MAX_CAPTURES {
            return Err(format!("A path has {MAX_CAPTURES} placeholders at most.").into());
        }
        self.parts.push(part);
        self.names.push(name.to_owned());
        Ok(())
    }
}

/// Returns the length of the placeholder's name that a text begins with; 0 if it begins with none.
pub(super) fn name_length(text: &str) -> usize {
    match text.as_bytes() {
        [first, ..] if first.is_ascii_alphabetic() => {
            let mut bytes = text.bytes();
            let end = bytes.position(|byte| !byte.is_ascii_alphanumeric() && byte != b'_');
            end.unwrap_or(text.len())
        }
        _ => 0,
    }
}

/// Returns a rule's path without the slash at its begin.
fn path_of(text: &str) -> Result<&str, Reason> {
    let Some(path) = text.strip_prefix('/') else {
        return Err(match text.contains("://") {
            true => {
                "A rule is for paths of this site, on every host: leave scheme and host out.".into()
            }
            false => format!(
                "`{}` is no path: write it with a slash at its begin.",
                excerpt(text)
            )
            .into(),
        });
    };
    if path.contains('?') {
        return Err(
            "Query strings of requests take no part in rules: write the path alone.".into(),
        );
    }
    match path.contains(['#', '\\']) {
        true => Err("A path has neither `#` nor a backslash: encode it as %23 or %5C.".into()),
        false => Ok(path),
    }
}

/// Decodes a segment of a path; `goes_on` if `*` is beside it.
fn decode_segment(segment: &str, goes_on: bool) -> Result<String, Reason> {
    let fault = || {
        Reason::from(
            "The path has a `%` without two hexadecimal digits of UTF-8 after it: write %25 for the sign itself.",
        )
    };
    let mut decoded = Vec::with_capacity(segment.len());
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digits = bytes
                    .next()
                    .and_then(digit)
                    .zip(bytes.next().and_then(digit));
                let (high, low) = digits.ok_or_else(fault)?;
                (high << 4) | low
            }
            _ => byte,
        });
    }
    let decoded = String::from_utf8(decoded).map_err(|_| fault())?;
    if decoded.contains('/') || decoded.contains(char::is_control) {
        return Err(
            "The path has an encoded slash or control character, which no path of a site has."
                .into(),
        );
    }
    match !goes_on && [".", ".."].contains(&decoded.as_str()) {
        true => Err("The path has a segment `.` or `..`, which no request has.".into()),
        false => Ok(decoded),
    }
}

/// Returns the value of a hexadecimal digit.
pub(super) fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
