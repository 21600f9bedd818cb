//! Highlighting of code: one pass over a block, with a table of languages instead of grammars.
//!
//! Every call is a fresh instance, so each page pays for all that a highlighter loads and compiles. The usual one, syntect with
//! its curated dump, was measured inside the component: its regular expressions cost 130 ms and 0.6 G of fuel for 1 KB of Rust,
//! 1.2 s for a page in sixteen languages, and with a backtracking matcher a hostile block can use up the page's budget.
//! Tree-sitter's grammars need a C compiler for the guest. This scanner never looks back, needs no start-up, and recognises
//! words, strings, comments and numbers; other code stays plain.

mod code;
mod common_languages;
mod languages;
mod markup;
mod rare_languages;

use std::fmt;

/// Size limit of highlighted blocks, in bytes; larger ones are shown plain.
pub(crate) const MAX_BLOCK_BYTES: usize = 64 * 1024;

/// Class of a token of code. Each class has a colour in the styles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenClass {
    Plain,
    Keyword,
    /// `true`, `nil` and similar words.
    Literal,
    Type,
    Function,
    String,
    Number,
    Comment,
    /// Attributes, decorators, preprocessor lines, tags.
    Meta,
    /// Keys, attributes of tags, variables with a sigil.
    Name,
    Inserted,
    Deleted,
}

impl TokenClass {
    /// Returns the CSS class.
    fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Keyword => "hk",
            Self::Literal => "hl",
            Self::Type => "ht",
            Self::Function => "hf",
            Self::String => "hs",
            Self::Number => "hn",
            Self::Comment => "hc",
            Self::Meta => "hm",
            Self::Name => "hv",
            Self::Inserted => "hi",
            Self::Deleted => "hd",
        }
    }
}

/// Writes a block of code, highlighted if the language is known.
pub(crate) fn write_highlighted(
    out: &mut dyn fmt::Write,
    language: &str,
    code: &str,
) -> fmt::Result {
    let mut pieces = SpanWriter {
        out,
        code,
        written: 0,
        pending: TokenClass::Plain,
        pending_from: 0,
    };
    if code.len() <= MAX_BLOCK_BYTES {
        let language = language.to_ascii_lowercase();
        match language.as_str() {
            "diff" | "patch" => highlight_diff(&mut pieces)?,
            "html" | "htm" | "xml" | "svg" | "xhtml" | "vue" | "svelte" | "astro" | "rss" => {
                markup::scan(&mut pieces)?;
            }
            name => {
                if let Some(language) = languages::find_language(name) {
                    code::scan(language, &mut pieces)?;
                }
            }
        }
    }
    pieces.write_rest()
}

/// Writes code token by token, and joins neighbours of one class.
struct SpanWriter<'a> {
    out: &'a mut dyn fmt::Write,
    code: &'a str,
    written: usize,
    pending: TokenClass,
    pending_from: usize,
}

impl<'a> SpanWriter<'a> {
    /// Assigns a class to all text up to `end` that was not assigned yet.
    fn take(&mut self, end: usize, kind: TokenClass) -> fmt::Result {
        if kind != self.pending {
            self.flush(self.written)?;
            self.pending = kind;
        }
        self.written = end;
        Ok(())
    }

    fn flush(&mut self, end: usize) -> fmt::Result {
        let piece = &self.code[self.pending_from..end];
        self.pending_from = end;
        if piece.is_empty() {
            return Ok(());
        }
        if self.pending == TokenClass::Plain {
            return comrak::html::escape(self.out, piece);
        }
        self.out.write_str("<span class=\"")?;
        self.out.write_str(self.pending.class())?;
        self.out.write_str("\">")?;
        comrak::html::escape(self.out, piece)?;
        self.out.write_str("</span>")
    }

    /// Writes the rest of the code as plain.
    fn write_rest(mut self) -> fmt::Result {
        self.take(self.code.len(), TokenClass::Plain)?;
        self.flush(self.code.len())
    }
}

/// Highlights a diff, line by line.
fn highlight_diff(pieces: &mut SpanWriter<'_>) -> fmt::Result {
    let mut end = 0;
    for line in pieces.code.split_inclusive('\n') {
        end += line.len();
        let kind = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'd', b'i', b'f', b'f', ..] => {
                TokenClass::Comment
            }
            [b'@', ..] => TokenClass::Meta,
            [b'+', ..] => TokenClass::Inserted,
            [b'-', ..] => TokenClass::Deleted,
            _ => TokenClass::Plain,
        };
        pieces.take(end, kind)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows tokens as `class:text`, so that expectations are readable.
    fn pieces(language: &str, code: &str) -> String {
        let mut html = String::new();
        write_highlighted(&mut html, language, code).unwrap();
        let mut shown = String::new();
        for piece in html.split("<span class=\"h") {
            match piece.split_once("\">") {
                Some((class, rest)) => {
                    let (text, after) = rest.split_once("</span>").unwrap();
                    shown.push_str(&format!("[{class}:{text}]{after}"));
                }
                None => shown.push_str(piece),
            }
        }
        shown
    }

    #[test]
    fn languages_are_told_apart() {
        for (language, code, expected) in [
            (
                "rust",
                "fn f(x: &'a str) -> u8 { 'x' }",
                "[k:fn] [f:f](x: &amp;'a [t:str]) -&gt; [t:u8] { [s:'x'] }",
            ),
            (
                "rs",
                "#[test] let s = r#\"a\"b\"#; // end",
                "[m:#[test]] [k:let] s = [s:r#&quot;a&quot;b&quot;#]; [c:// end]",
            ),
            ("rust", "/* a /* b */ c */ x", "[c:/* a /* b */ c */] x"),
            ("rust", "// A.\nuse b;", "[c:// A.]\n[k:use] b;"),
            (
                "css",
                "a{b:url(http://c)} // d",
                "a{[v:b]:[f:url](http://c)} [c:// d]",
            ),
            (
                "js",
                "const a = /['\"]/.test(`x\n`) // y",
                "[k:const] a = [s:/['&quot;]/].[f:test]([s:`x\n`]) [c:// y]",
            ),
            (
                "python",
                "@cached\ndef f():\n  \"\"\"doc\n\"\"\"\n  return None",
                "[m:@cached]\n[k:def] [f:f]():\n  [s:&quot;&quot;&quot;doc\n&quot;&quot;&quot;]\n  [k:return] [l:None]",
            ),
            (
                "sql",
                "select Count(*) FROM t -- x",
                "[k:select] [f:Count](*) [k:FROM] t [c:-- x]",
            ),
            (
                "json",
                "{\"a\": [1e-5, \"b\", null]}",
                "{[v:&quot;a&quot;]: [[n:1e-5], [s:&quot;b&quot;], [l:null]]}",
            ),
            (
                "sh",
                "echo \"$x\" $HOME # hi\na#b",
                "[k:echo] [s:&quot;$x&quot;] [v:$HOME] [c:# hi]\na#b",
            ),
            (
                "yaml",
                "key: true # c\n- a: 'b'",
                "[v:key]: [l:true] [c:# c]\n- [v:a]: [s:'b']",
            ),
            ("toml", "[a]\nb = 1", "[[v:a]]\n[v:b] = [n:1]"),
            (
                "html",
                "<!-- c --><a href=\"x\">y &amp; z</a>",
                "[c:&lt;!-- c --&gt;][m:&lt;a] [v:href]=[s:&quot;x&quot;][m:&gt;]y [l:&amp;amp;] z[m:&lt;/a&gt;]",
            ),
            (
                "diff",
                "@@ 1\n+a\n-b\n c\n",
                "[m:@@ 1\n][i:+a\n][d:-b\n] c\n",
            ),
            (
                "c",
                "#include <a.h>\nint x = 0xFFu;",
                "[m:#include &lt;a.h&gt;]\n[t:int] x = [n:0xFFu];",
            ),
            (
                "erlang",
                "f(X) -> case X of 1 -> ok end. % c",
                "[f:f]([t:X]) -&gt; [k:case] [t:X] [k:of] [n:1] -&gt; [l:ok] [k:end]. [c:% c]",
            ),
            (
                "tex",
                "\\section{A} $\\alpha$ \\% % c",
                "[k:\\section]{A} $[k:\\alpha]$ \\% [c:% c]",
            ),
            ("cmake", "set(A ${B}) # c", "[k:set](A [v:${B}]) [c:# c]"),
            (
                "http",
                "GET /a HTTP/1.1\nHost: x",
                "[k:GET] /a [k:HTTP]/[n:1.1]\n[v:Host]: x",
            ),
            (
                "vb",
                "Dim x As Integer ' c",
                "[k:Dim] x [k:As] [t:Integer] [c:' c]",
            ),
            ("unheard-of", "fn x() <b>", "fn x() &lt;b&gt;"),
        ] {
            assert_eq!(pieces(language, code), expected, "{language}");
        }
    }

    #[test]
    fn no_character_is_lost_whatever_the_code() {
        let hostile = [
            "\"",
            "'",
            "`",
            "/*",
            "<!--",
            "<a b='",
            "r###\"",
            "'\\",
            "$",
            "${",
            "@",
            "#",
            "#[",
            "é'ü\"😀",
            "\\",
            "0x",
            "1..2",
            "/[/",
            "\"\"\"",
            "--",
            "<",
            "</",
            "&",
            "&a",
            "\u{0}",
            "{-",
            "--[[",
            "=begin",
            "a'",
            "b\"\\",
            "r#",
            "%q(",
            "<<EOF",
            "\r\n",
        ];
        for name in common_languages::LANGUAGES
            .iter()
            .chain(rare_languages::LANGUAGES)
            .flat_map(|language| language.names.split(' '))
            .chain(["html", "diff"])
        {
            for code in hostile {
                for code in [
                    code.to_owned(),
                    format!("x {code}"),
                    format!("{code} ü\n{code}"),
                    code.repeat(50),
                ] {
                    let mut html = String::new();
                    write_highlighted(&mut html, name, &code).unwrap();
                    let mut expected = String::new();
                    comrak::html::escape(&mut expected, &code).unwrap();
                    let mut plain = html.replace("</span>", "");
                    while let Some(at) = plain.find("<span class=\"h") {
                        plain.replace_range(at..at + "<span class=\"hx\">".len(), "");
                    }
                    assert_eq!(plain, expected, "{name}: {code:?}");
                }
            }
        }
    }

    #[test]
    fn large_blocks_are_plain() {
        let code = "fn ".repeat(MAX_BLOCK_BYTES / 3 + 1);
        let mut html = String::new();
        write_highlighted(&mut html, "rust", &code).unwrap();
        assert_eq!(html, code);
    }
}
