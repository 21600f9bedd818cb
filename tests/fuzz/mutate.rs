//! Changes texts at random, the same way for the same seed.

use svc_tests::SeededRng;

/// The longest text that is made, in bytes.
const LONGEST: usize = 4096;

/// Tokens of the languages, which random bytes would rarely hit.
const TOKENS: [&str; 56] = [
    "\"",
    "'",
    "`",
    "```",
    "~~~",
    "<",
    ">",
    "</",
    "<!--",
    "-->",
    "<![CDATA[",
    "<script>",
    "<svg/onload=",
    "&amp;",
    "&#0;",
    "\0",
    "\u{feff}",
    "\u{202e}",
    "\u{300}",
    "\u{1f468}\u{200d}",
    "\r\n",
    "\r",
    "\n\n",
    "\t",
    "[",
    "](",
    "![",
    "{",
    "}",
    "(",
    ")",
    ",",
    ";",
    ":",
    "|",
    "|---|",
    "- [ ] ",
    "#",
    "> ",
    "[^1]: ",
    "javascript:",
    "--> ",
    "%%{init: {}}%%",
    "subgraph a",
    "click A href \"x\"",
    "\\u0000",
    "\\ud800",
    "1e999",
    "-",
    "SELECT ",
    " UNION ",
    "WITH RECURSIVE ",
    "/*",
    "*/",
    ":svc_user_id",
    " RETURNING *",
];

/// A source of changes.
pub(crate) struct Mutator(SeededRng);

impl Mutator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SeededRng::new(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.draw()
    }

    /// A number below another, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("a bound of 64 bits");
        usize::try_from(self.next() % bound).expect("a number below a usize")
    }

    /// A piece of a text.
    fn random_range(&mut self, of: usize) -> std::ops::Range<usize> {
        let start = self.below(of + 1);
        let length = self.below(33).min(of - start);
        start..start + length
    }

    /// A text made of one by a few changes; pieces of another one go into it.
    pub(crate) fn change(&mut self, text: &[u8], other: &[u8]) -> Vec<u8> {
        let mut text = text.to_vec();
        for _ in 0..=self.below(4) {
            let range = self.random_range(text.len());
            match self.below(6) {
                0 => drop(text.drain(range)),
                1 => {
                    let piece = text[range.clone()].repeat(1 + self.below(20));
                    text.splice(range, piece);
                }
                2 => {
                    let token = TOKENS[self.below(TOKENS.len())];
                    text.splice(range.start..range.start, token.bytes());
                }
                3 => {
                    let token = TOKENS[self.below(TOKENS.len())];
                    text.splice(range, token.repeat(1 + self.below(30)).into_bytes());
                }
                4 => {
                    let piece = self.random_range(other.len());
                    text.splice(range, other[piece].to_vec());
                }
                _ => {
                    let bit = 1 << self.below(8);
                    for byte in &mut text[range] {
                        *byte ^= bit;
                    }
                }
            }
            text.truncate(LONGEST);
        }
        text
    }
}
