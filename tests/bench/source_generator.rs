//! Sources to publish: text as people write it, different each time, the same in every run.

use std::fmt::Write as _;

use svc_tests::SeededRng;

const WORDS: [&str; 48] = [
    "river", "the", "of", "and", "a", "to", "in", "lantern", "window", "paper", "morning", "that",
    "slowly", "between", "market", "garden", "is", "was", "for", "with", "station", "copper",
    "through", "quiet", "letter", "on", "as", "had", "answer", "winter", "bridge", "under",
    "several", "without", "harbour", "at", "by", "little", "machine", "corner", "evening", "which",
    "walked", "measure", "table", "yellow", "open", "again",
];

/// Writes sources; two with the same seed write the same.
#[derive(Debug)]
pub(crate) struct SourceGenerator(SeededRng);

impl SourceGenerator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SeededRng::new(seed))
    }

    fn number(&mut self) -> u64 {
        self.0.draw()
    }

    fn word(&mut self) -> &'static str {
        let at = self.number() % WORDS.len() as u64;
        WORDS[usize::try_from(at).unwrap_or(0)]
    }

    fn sentence(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..8 + self.number() % 9 {
            text.push_str(self.word());
            text.push(' ');
        }
        text.pop();
        text + "."
    }

    /// An HTML page of exactly `bytes`.
    pub(crate) fn html(&mut self, bytes: usize) -> String {
        let mut page =
            "<!doctype html><html lang=en><meta charset=utf-8><title>A page</title>\n".to_owned();
        while page.len() < bytes {
            let sentence = self.sentence();
            let _ = writeln!(page, "<p class=\"text\">{sentence}</p>");
        }
        page.truncate(bytes);
        page
    }

    /// Markdown of about `bytes`, with headings, lists, a table and code.
    pub(crate) fn markdown(&mut self, bytes: usize) -> String {
        let mut text = String::new();
        while text.len() < bytes {
            let (a, b) = (self.sentence(), self.sentence());
            let (x, y) = (self.word(), self.word());
            let _ = write!(
                text,
                "## {x} {y}\n\n{a} **{x}** and *{y}*, [a link](https://example.com/{x}). {b}\n\n- {x}\n- {y}\n  - `{x}`\n\n| {x} | {y} |\n|---|--:|\n| {a} | {} |\n\n```rust\nfn {x}({y}: &str) -> usize {{ {y}.len() + {} }}\n```\n\n",
                self.number() % 1000,
                self.number() % 1000,
            );
        }
        text
    }

    /// JSON of about `bytes`.
    pub(crate) fn json(&mut self, bytes: usize) -> String {
        let mut text = "[".to_owned();
        while text.len() < bytes {
            let (name, note) = (self.word(), self.sentence());
            let _ = write!(
                text,
                "{{\"name\": \"{name}\", \"amount\": {}, \"note\": \"{note}\", \"tags\": [\"{}\", null, true]}},\n ",
                self.number() % 100_000,
                self.word(),
            );
        }
        text + "null]"
    }

    /// CSV of about `bytes`.
    pub(crate) fn csv(&mut self, bytes: usize) -> String {
        let mut text = "name,amount,note,place\n".to_owned();
        while text.len() < bytes {
            let (name, note) = (self.word(), self.sentence());
            let _ = writeln!(
                text,
                "{name},{},\"{note}\",{}",
                self.number() % 100_000,
                self.word()
            );
        }
        text
    }

    /// A mermaid flowchart of about `bytes`.
    pub(crate) fn mermaid(&mut self, bytes: usize) -> String {
        let mut text = "flowchart TD\n".to_owned();
        while text.len() < bytes {
            let (from, to) = (self.number() % 40, self.number() % 40);
            let _ = writeln!(
                text,
                "  n{from}[{}] --> n{to}[{}]",
                self.word(),
                self.word()
            );
        }
        text
    }
}
