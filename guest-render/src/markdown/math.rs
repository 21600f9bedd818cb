//! Formulas: LaTeX is converted to MathML, which browsers show without a library; an unreadable formula shows its source.

use std::borrow::Cow;
use std::fmt;

use math_core::{LatexToMathML, MathCoreConfig, MathDisplay};
use maud::html;

/// Size limit of a converted formula, in bytes.
const MAX_FORMULA_BYTES: usize = 8 << 10;
/// Nesting limit of groups in a converted formula.
const MAX_DEPTH: usize = 60;
/// Maximum of formulas in a page; further ones show their source.
const MAX_FORMULAS: usize = 4_000;

/// Commands that the library lacks and authors use, with the replacements of the command and its braces.
const COMMAND_REPLACEMENTS: [(&str, &str, &str); 5] = [
    (
        r"\boxed{",
        r"\begin{array}{|c|}\hline\displaystyle ",
        r"\\ \hline\end{array}",
    ),
    (r"\substack{", r"\begin{matrix}", r"\end{matrix}"),
    (r"\tag{", r"\qquad\text{(", ")}"),
    (r"\ce{", r"\mathrm{", "}"),
    (r"\mbox{", r"\text{", "}"),
];

/// Elements that a formula may consist of.
const MATHML_ELEMENTS: [&str; 28] = [
    "b",
    "i",
    "math",
    "menclose",
    "mfrac",
    "mi",
    "mmultiscripts",
    "mn",
    "mo",
    "mover",
    "mpadded",
    "mphantom",
    "mprescripts",
    "mroot",
    "mrow",
    "mspace",
    "msqrt",
    "mstyle",
    "msub",
    "msubsup",
    "msup",
    "mtable",
    "mtd",
    "mtext",
    "mtr",
    "munder",
    "munderover",
    "span",
];

/// Converter of a page's formulas into MathML.
pub(super) struct FormulaConverter {
    /// Created for the first formula: other pages do not pay for it.
    reader: Option<LatexToMathML>,
    remaining: usize,
}

impl FormulaConverter {
    pub(super) fn new() -> Self {
        Self {
            reader: None,
            remaining: MAX_FORMULAS,
        }
    }

    /// Writes a formula: on a line of its own, or within text.
    pub(super) fn write(
        &mut self,
        out: &mut dyn fmt::Write,
        latex: &str,
        is_display: bool,
    ) -> fmt::Result {
        match self.write_mathml(latex, is_display) {
            Ok(math) => out.write_str(&math),
            Err(reason) => {
                let source = html! {
                    code.math title=(format!("This formula cannot be shown: {reason}")) { (latex.trim()) }
                };
                out.write_str(&source.0)
            }
        }
    }

    fn write_mathml(&mut self, latex: &str, is_display: bool) -> Result<String, String> {
        if latex.len() > MAX_FORMULA_BYTES || nesting_depth(latex) > MAX_DEPTH {
            return Err("it is too long or nests too deep".to_owned());
        }
        let Some(left) = self.remaining.checked_sub(1) else {
            return Err(format!("a page has at most {MAX_FORMULAS}"));
        };
        self.remaining = left;
        let display = if is_display {
            MathDisplay::Block
        } else {
            MathDisplay::Inline
        };
        let reader = match self.reader.take() {
            Some(reader) => reader,
            None => new_converter()?,
        };
        let read = reader.convert_with_local_state(&replace_commands(latex), display);
        self.reader = Some(reader);
        let math = read.map_err(|error| error.to_string())?.mathml;
        if !is_safe_mathml(&math) {
            return Err("it holds what is no formula".to_owned());
        }
        Ok(if is_display {
            // A formula that is wider than the page can be scrolled, by keyboard too.
            math.replacen("<math", "<math tabindex=\"0\"", 1)
        } else {
            math
        })
    }
}

fn new_converter() -> Result<LatexToMathML, String> {
    let reader = LatexToMathML::new(MathCoreConfig::default());
    reader.map_err(|_| "the reader of formulas is broken".to_owned())
}

/// Replaces commands that the library lacks.
fn replace_commands(latex: &str) -> Cow<'_, str> {
    let mut latex = remove_row_gaps(latex);
    for (command, open, close) in COMMAND_REPLACEMENTS {
        // Each iteration removes one command and adds none.
        while let Some(at) = latex.find(command) {
            let from = at + command.len();
            let Some(length) = group_length(&latex[from..]) else {
                break;
            };
            let (inside, after) = (&latex[from..from + length], &latex[from + length + 1..]);
            latex = Cow::Owned([&latex[..at], open, inside, close, after].concat());
        }
    }
    latex
}

/// Removes row distances such as `\\[4pt]`, which the library would show.
fn remove_row_gaps(latex: &str) -> Cow<'_, str> {
    const BREAK: &str = r"\\[";
    if !latex.contains(BREAK) {
        return Cow::Borrowed(latex);
    }
    let mut parts = latex.split(BREAK);
    let mut without = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']').filter(|(gap, _)| is_length(gap)) {
            Some((_, rest)) => without.extend([r"\\ ", rest]),
            None => without.extend([BREAK, part]),
        }
    }
    Cow::Owned(without)
}

/// Whether a text is a number with a unit, as in `-1.5 ex`.
fn is_length(text: &str) -> bool {
    let unit = text
        .trim_start_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | '-' | ' '));
    text.len() > unit.len() && unit.len() == 2 && unit.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Returns the length of the group that `text` is in, up to its closing brace.
fn group_length(text: &str) -> Option<usize> {
    let (mut depth, mut is_escaped) = (0_usize, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => {}
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
        is_escaped = byte == b'\\' && !is_escaped;
    }
    None
}

/// Returns the maximum nesting of groups, fences and environments.
fn nesting_depth(latex: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut rest = latex;
    while let Some(at) = rest.find(['{', '}', '\\', '^', '_']) {
        let from = &rest[at..];
        let mut length = 1;
        if from.starts_with('{') || from.starts_with(r"\left") || from.starts_with(r"\begin") {
            depth += 1;
        } else if ["}", r"\right", r"\end"]
            .iter()
            .any(|close| from.starts_with(close))
        {
            depth = depth.saturating_sub(1);
        } else if let Some(escaped) = from.strip_prefix('\\') {
            // Escaped braces do not count.
            length += escaped.chars().next().map_or(0, char::len_utf8);
        }
        deepest = deepest.max(depth);
        rest = &from[length..];
    }
    deepest + longest_unbraced_run(latex)
}

/// Returns the longest run of commands without a brace: each may take the next as its argument.
fn longest_unbraced_run(latex: &str) -> usize {
    let (mut run, mut longest) = (0_usize, 0);
    for byte in latex.bytes() {
        match byte {
            b'\\' | b'^' | b'_' => run += 1,
            b'a'..=b'z' | b'A'..=b'Z' => {}
            _ => run = 0,
        }
        longest = longest.max(run);
    }
    longest
}

/// Whether the library's output consists of known elements, without handlers, links and addresses. The library escapes its input;
/// this is a second check.
fn is_safe_mathml(math: &str) -> bool {
    math.split('<').skip(1).all(|part| {
        let Some((tag, text)) = part.split_once('>') else {
            return false;
        };
        let name = tag.trim_start_matches('/').split([' ', '/']).next();
        let attributes = tag.split_once(' ').map_or("", |(_, attributes)| attributes);
        let is_known = name.is_some_and(|name| MATHML_ELEMENTS.contains(&name));
        let mut names = attributes.split('"').step_by(2).map(str::trim);
        let is_harmless = names.all(|name| {
            let name = name.trim_end_matches('=');
            !name.starts_with("on") && !matches!(name, "href" | "src" | "xlink:href" | "id")
        });
        is_known && is_harmless && !attributes.contains("url(") && !text.contains('>')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(latex: &str) -> String {
        let mut out = String::new();
        FormulaConverter::new()
            .write(&mut out, latex, false)
            .unwrap();
        out
    }

    #[test]
    fn formulas_become_mathml() {
        for (latex, part) in [
            (r"x^2", "<msup><mi>x</mi><mn>2</mn></msup>"),
            (r"\frac{a}{b}", "<mfrac><mi>a</mi><mi>b</mi></mfrac>"),
            (
                r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
                "<mtd><mn>4</mn></mtd>",
            ),
            (r"\begin{aligned}a&=b\\&=c\end{aligned}", "<mtable"),
            (r"\text{if } x<0", "<mo>&lt;</mo>"),
            (r"\boxed{x=1}", "<mtable"),
            (r"\sum_{\substack{a\\b}} \boxed{\frac{1}{2}}", "<mtable"),
            (r"x \tag{1}", "(1)"),
            (
                r"\begin{cases}a\\[4pt]b\\[-.5 em]c\end{cases}",
                "<mi>b</mi></mtd></mtr>",
            ),
            (r"\begin{aligned}a\\[b]\end{aligned}", "<mi>b</mi>"),
        ] {
            let math = shown(latex);
            assert!(
                math.starts_with("<math") && math.contains(part),
                "{latex}: {math}"
            );
        }
        let mut out = String::new();
        FormulaConverter::new().write(&mut out, "x", true).unwrap();
        assert!(
            out.starts_with("<math tabindex=\"0\" display=\"block\">"),
            "{out}"
        );
    }

    #[test]
    fn what_cannot_be_read_shows_its_source_and_why() {
        for latex in [
            r"\frac{a",
            r"\unheardof{x}",
            r"\href{javascript:alert(1)}{x}",
            r"\includegraphics{https://e.example/x}",
            r"}",
            r"\text{<img src=x onerror=alert(1)>",
            &"{".repeat(500),
            &r"\sqrt".repeat(1000),
            &"x^".repeat(500),
            &"x".repeat(MAX_FORMULA_BYTES + 1),
        ] {
            let shown = shown(latex);
            assert!(
                shown.starts_with("<code class=\"math\" title=\"This formula cannot be shown: "),
                "{latex}: {shown}"
            );
            assert!(!shown.contains("<img"), "{shown}");
        }
    }

    #[test]
    fn nothing_in_a_formula_becomes_markup() {
        for latex in [
            r"\text{<img src=x onerror=alert(1)>}",
            "<script>alert(1)</script>",
            r"\mathrm{<b>}",
            r"\operatorname{<svg/onload=alert(1)>}",
            "\"onload=\"",
            r"\color{red}\text{&lt;script&gt;}",
            r"\text{\textbf{</math><script>}}",
            "a & b < c > d \" ' \u{0}",
        ] {
            let shown = shown(latex).to_lowercase();
            for bad in ["<img", "<script", "<svg", "onload=\"", "</math><"] {
                assert!(!shown.contains(bad), "{latex}: {shown}");
            }
        }
    }

    #[test]
    fn the_second_wall_holds() {
        for good in [
            "<math><mi>x</mi></math>",
            "<math display=\"block\"><mspace width=\"1em\"/></math>",
        ] {
            assert!(is_safe_mathml(good), "{good}");
        }
        for bad in [
            "<math><script>",
            "<math><mi onclick=\"x\">x</mi></math>",
            "<math><mi a=\"b\" onclick=\"x\">x</mi></math>",
            "<math><mtext href=\"x\">x</mtext></math>",
            "<math><mi style=\"background:url(x)\">x</mi></math>",
            "<math",
            "<math>a>b</math>",
        ] {
            assert!(!is_safe_mathml(bad), "{bad}");
        }
    }
}
