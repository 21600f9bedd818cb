//! Lines of a file of rules.

use super::{Fault, Reason, RuleFile};

/// Most bytes of a file of rules.
const MAX_FILE_BYTES: usize = 64 << 10;

/// A file of rules, as a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleText<'t> {
    file: RuleFile,
    text: &'t str,
}

/// A line of a file of rules, without spaces at its ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleLine<'t> {
    /// Number of the line, from 1.
    pub(super) number: u32,
    /// Text of the line.
    pub(super) text: &'t str,
}

impl RuleLine<'_> {
    /// Whether the line is empty or a comment.
    pub(super) fn is_blank(&self) -> bool {
        self.text.is_empty() || self.text.starts_with('#')
    }
}

impl<'t> RuleText<'t> {
    /// Reads a file.
    ///
    /// # Errors
    /// The file is too long, or no text.
    pub(super) fn new(file: RuleFile, bytes: &'t [u8]) -> Result<Self, Fault> {
        let empty = Self { file, text: "" };
        if bytes.len() > MAX_FILE_BYTES {
            let reason = format!("The file has more than {MAX_FILE_BYTES} bytes: leave rules out.");
            return Err(empty.fault(1, reason.into()));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let valid = &bytes[..error.valid_up_to()];
            let breaks = valid.iter().filter(|byte| **byte == b'\n').count();
            let line = u32::try_from(breaks).unwrap_or(u32::MAX).saturating_add(1);
            empty.fault(line, "The file is no text in UTF-8: save it as one.".into())
        })?;
        // Editors on Windows begin a file with a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Ok(Self { file, text })
    }

    /// Returns the lines, each of which may have a fault.
    pub(super) fn lines(self) -> impl Iterator<Item = Result<RuleLine<'t>, Fault>> {
        let lines = (1..).zip(self.text.split_terminator('\n'));
        lines.map(move |(number, line)| {
            let line = line.strip_suffix('\r').unwrap_or(line);
            match character_fault(line) {
                Some(reason) => Err(self.fault(number, reason)),
                None => Ok(RuleLine {
                    number,
                    text: line.trim_matches([' ', '\t']),
                }),
            }
        })
    }

    /// Makes a fault of a line.
    pub(super) fn fault(self, line: u32, reason: Reason) -> Fault {
        Fault {
            file: self.file,
            line,
            reason: reason.into_owned(),
        }
    }
}

/// Returns what is wrong with a character of a line. A carriage return in it would be the begin of another line for some readers.
fn character_fault(line: &str) -> Option<Reason> {
    line.chars().find_map(|character| match character {
        '\t' => None,
        _ if character.is_control() => {
            Some("The line has a control character: take it out.".into())
        }
        _ if character.is_whitespace() && !character.is_ascii() => Some(
            "The line has a space or a break that is none of ASCII's: write a plain space.".into(),
        ),
        _ => None,
    })
}
