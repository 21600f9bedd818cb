//! Rules that every rendered page must keep, as far as a program can check them.

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{StartTag, Token, Tokenizer};

use svc_sandbox::{ContentType, RenderSource, RuntimeScript};

/// Elements that no page of text or data has: they load, frame or run something.
const FORBIDDEN_ELEMENTS: [&str; 9] = [
    "applet",
    "base",
    "embed",
    "foreignobject",
    "frame",
    "iframe",
    "object",
    "portal",
    "template",
];

/// Attributes whose value a browser loads without a click.
const LOADING_ATTRIBUTES: [&str; 6] = [
    "background",
    "data",
    "poster",
    "src",
    "srcset",
    "xlink:href",
];

/// Finds the faults of a page, a sentence each. HTML sources have rules of their own.
pub(super) fn find_faults(source: &RenderSource, page: &str) -> Vec<String> {
    if source.content_type == ContentType::Html {
        return find_html_faults(source, page);
    }
    let mut checker = PageChecker::new(source);
    let mut emitter = DefaultEmitter::<()>::default();
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(page, emitter).flatten() {
        checker.check_token(token);
    }
    checker.finish(page)
}

/// Returns the script tag that the guests' interface prescribes.
fn script_tag(script: &RuntimeScript) -> String {
    format!(
        r#"<script src="{}" data-slug="{}"></script>"#,
        script.src, script.slug
    )
}

/// Checks that HTML is served byte for byte, but for the one script.
fn find_html_faults(source: &RenderSource, page: &str) -> Vec<String> {
    let expected = match &source.runtime {
        None => page.to_owned(),
        Some(script) => {
            let tag = script_tag(script);
            if page.matches(&tag).count() != 1 {
                return vec![format!("the page does not hold {tag} once")];
            }
            page.replacen(&tag, "", 1)
        }
    };
    if expected == source.text {
        Vec::new()
    } else {
        vec!["the page is not the source byte for byte, but for the runtime's script".to_owned()]
    }
}

/// Checker of a page, with its findings so far.
struct PageChecker<'a> {
    source: &'a RenderSource,
    faults: Vec<String>,
    begun: bool,
    doctype: bool,
    language: bool,
    charset: bool,
    viewport: bool,
    title: Option<String>,
    in_title: bool,
    in_style: bool,
    in_head: bool,
    scripts: usize,
}

impl<'a> PageChecker<'a> {
    fn new(source: &'a RenderSource) -> Self {
        Self {
            source,
            faults: Vec::new(),
            begun: false,
            doctype: false,
            language: false,
            charset: false,
            viewport: false,
            title: None,
            in_title: false,
            in_style: false,
            in_head: false,
            scripts: 0,
        }
    }

    fn check_token(&mut self, token: Token) {
        match token {
            Token::Doctype(doctype) => {
                self.doctype |= !self.begun && doctype.name.eq_ignore_ascii_case(b"html");
                self.begun = true;
            }
            Token::StartTag(tag) => {
                self.begun = true;
                self.check_start_tag(&tag);
            }
            Token::EndTag(tag) => match to_lowercase(&tag.name).as_str() {
                "title" => self.in_title = false,
                "style" => self.in_style = false,
                _ => {}
            },
            Token::String(text) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                self.begun |= !text.trim().is_empty();
                if self.in_style {
                    self.check_style(&text);
                }
                if self.in_title
                    && let Some(title) = &mut self.title
                {
                    title.push_str(&text);
                }
            }
            Token::Comment(_) | Token::Error(_) => {}
        }
    }

    fn check_start_tag(&mut self, tag: &StartTag<()>) {
        let name = to_lowercase(&tag.name);
        let value = |wanted: &[u8]| {
            let found = tag.attributes.iter().find(|(name, _)| ***name == *wanted);
            found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
        };
        match name.as_str() {
            "html" => self.language |= value(b"lang").is_some_and(|lang| !lang.is_empty()),
            "head" => self.in_head = true,
            "title" if self.title.is_none() => {
                self.in_title = true;
                self.title = Some(String::new());
            }
            "style" => self.in_style = true,
            "meta" => {
                let charset = value(b"charset").unwrap_or_default();
                self.charset |= charset.eq_ignore_ascii_case("utf-8");
                self.viewport |= value(b"name").is_some_and(|name| name == "viewport");
            }
            "script" => {
                self.scripts += 1;
                let (src, slug) = (value(b"src"), value(b"data-slug"));
                let ours = self.source.runtime.as_ref().is_some_and(|script| {
                    src.as_ref() == Some(&script.src) && slug.as_ref() == Some(&script.slug)
                });
                if !ours {
                    self.add_fault("it has a script that is not the runtime's");
                }
            }
            forbidden if FORBIDDEN_ELEMENTS.contains(&forbidden) => {
                self.add_fault(&format!("it has an element `{forbidden}`"));
            }
            _ => {}
        }
        for (attribute, value) in &tag.attributes {
            self.check_attribute(
                &name,
                &to_lowercase(attribute),
                &String::from_utf8_lossy(value),
            );
        }
    }

    fn check_attribute(&mut self, element: &str, name: &str, value: &str) {
        if name.starts_with("on") {
            self.add_fault(&format!("it has a handler `{name}`"));
        }
        let place: String = value
            .chars()
            .filter(|c| !c.is_ascii_whitespace() && !c.is_ascii_control())
            .collect::<String>()
            .to_ascii_lowercase();
        let elsewhere = place.contains("//") && !place.starts_with("data:");
        let loads = LOADING_ATTRIBUTES.contains(&name) || (name == "href" && element != "a");
        if loads && elsewhere && element != "script" {
            self.add_fault(&format!("`{element}` loads something from elsewhere"));
        }
        if place.starts_with("javascript:") || place.starts_with("vbscript:") {
            self.add_fault(&format!("`{element}` has a link that runs something"));
        }
        if name == "style" {
            self.check_style(value);
        }
    }

    fn check_style(&mut self, style: &str) {
        let style: String = style.split_ascii_whitespace().collect();
        let style = style.to_ascii_lowercase().replace(['"', '\''], "");
        let loads = ["@import", "url(http", "url(//"];
        if loads.iter().any(|load| style.contains(load)) {
            self.add_fault("a style loads something from elsewhere");
        }
    }

    fn add_fault(&mut self, what: &str) {
        if !self.faults.iter().any(|fault| fault == what) {
            self.faults.push(what.to_owned());
        }
    }

    fn finish(mut self, page: &str) -> Vec<String> {
        let wanted = usize::from(self.source.runtime.is_some());
        if self.scripts != wanted {
            let scripts = self.scripts;
            self.add_fault(&format!("it has {scripts} scripts, not {wanted}"));
        }
        if let Some(script) = &self.source.runtime
            && !page.contains(&script_tag(script))
        {
            let tag = script_tag(script);
            self.add_fault(&format!("it does not hold {tag} as the interface has it"));
        }
        let checks = [
            (self.doctype, "it does not begin with <!doctype html>"),
            (self.language, "its html element has no lang"),
            (self.in_head, "it has no head"),
            (self.charset, "it has no <meta charset=utf-8>"),
            (self.viewport, "it has no viewport"),
        ];
        for (fulfilled, fault) in checks {
            if !fulfilled {
                self.add_fault(fault);
            }
        }
        if self.title != self.source.title {
            self.add_fault("its title is not the one that was given, escaped");
        }
        self.faults
    }
}

fn to_lowercase(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = concat!(
        "<!doctype html><html lang=\"en\"><head>",
        "<script src=\"/r.js\" data-slug=\"s\"></script><meta charset=\"utf-8\">",
        "<meta name=\"viewport\" content=\"width=device-width\"><title>A &lt;b&gt; &amp; c</title>",
        "<style>p{background:url(data:image/png,x)}</style></head>",
        "<body><p>&lt;script&gt;<a href=\"https://example.com\">x</a></p></body></html>"
    );

    fn source(content_type: ContentType, text: &str) -> RenderSource {
        RenderSource {
            content_type,
            title: Some("A <b> & c".to_owned()),
            name: None,
            text: text.to_owned(),
            runtime: Some(RuntimeScript {
                src: "/r.js".to_owned(),
                slug: "s".to_owned(),
            }),
            page_bytes: 1 << 20,
            foot: None,
            is_private: false,
        }
    }

    #[test]
    fn a_good_page_has_no_faults() {
        assert_eq!(
            find_faults(&source(ContentType::Csv, ""), GOOD),
            Vec::<String>::new()
        );
    }

    #[test]
    fn every_fault_is_seen() {
        let source = source(ContentType::Csv, "");
        for (good, bad, fault) in [
            ("<!doctype html>", "", "doctype"),
            ("<!doctype html>", "<p><!doctype html>", "doctype"),
            (" lang=\"en\"", "", "lang"),
            ("<meta charset=\"utf-8\">", "", "charset"),
            ("viewport", "v", "viewport"),
            ("&lt;b&gt; &amp;", "<b> &amp; x", "title"),
            ("data-slug=\"s\"", "data-slug=\"t\"", "not the runtime's"),
            (
                "<script src=\"/r.js\" data-slug=\"s\"></script>",
                "",
                "0 scripts",
            ),
            ("&lt;script&gt;", "<script>x</script>", "2 scripts"),
            ("&lt;script&gt;", "<IMG SRC=x OnError=y>", "onerror"),
            ("&lt;script&gt;", "<img src=//e.example/x>", "elsewhere"),
            (
                "&lt;script&gt;",
                "<link href='https://e.example/x'>",
                "elsewhere",
            ),
            ("https://example.com", " java\tscript:x", "runs something"),
            (
                "url(data:image/png,x)",
                "url( 'https://e.example/')",
                "style",
            ),
            ("&lt;script&gt;", "<p style='background:url(//e)'>", "style"),
            ("&lt;script&gt;", "<iframe>", "iframe"),
        ] {
            let page = GOOD.replacen(good, bad, 1);
            assert_ne!(page, GOOD, "{good}");
            let found = find_faults(&source, &page);
            assert!(
                found.iter().any(|line| line.contains(fault)),
                "{fault}: {found:?}"
            );
        }
    }

    #[test]
    fn html_is_the_source_with_one_script() {
        let source = source(ContentType::Html, "<p>hello");
        let tag = r#"<script src="/r.js" data-slug="s"></script>"#;
        assert_eq!(
            find_faults(&source, &format!("{tag}<p>hello")),
            Vec::<String>::new()
        );
        for bad in [
            "<p>hello".to_owned(),
            format!("{tag}{tag}<p>hello"),
            format!("{tag}<p>hello "),
        ] {
            assert_eq!(find_faults(&source, &bad).len(), 1, "{bad}");
        }
    }
}
