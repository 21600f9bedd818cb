//! The second check of a drawing, held against drawings that no writer of diagrams should make.

use super::colours::Palette;
use super::safe::{DrawingRejection, rewrite};

/// A drawing with these contents, as it would come from the first writer, written anew.
fn rewritten(content: &str) -> Result<String, DrawingRejection> {
    made(content, false)
}

/// Makes a drawing that may be made for dark pages.
fn made(content: &str, is_made_for_dark: bool) -> Result<String, DrawingRejection> {
    let svg = format!(
        "<svg id=\"drawing\" xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" \
         viewBox=\"0 0 200 100\" aria-roledescription=\"pie\">{content}</svg>"
    );
    rewrite(&svg, "drawing", 3, is_made_for_dark)
}

/// Returns the text that was written after the styles.
fn body(content: &str) -> String {
    let svg = rewritten(content).unwrap();
    let at = svg.find("</style>").unwrap() + "</style>".len();
    svg[at..].strip_suffix("</svg>").unwrap().to_owned()
}

/// The rules that became of a sheet, without those for colours and labels.
fn rules(content: &str) -> String {
    let svg = rewritten(content).unwrap();
    let from = svg.find("sans-serif}").unwrap() + "sans-serif}".len();
    let to = svg.find("#D3 .l.l").unwrap();
    svg[from..to].to_owned()
}

#[test]
fn elements_that_no_drawing_has_end_it() {
    for (content, name) in [
        ("<script>alert(1)</script>", "script"),
        ("<g><g><animate onbegin=\"x\"/></g></g>", "animate"),
        ("<set attributeName=\"href\" to=\"javascript:x\"/>", "set"),
        ("<feImage href=\"https://a.example/\"/>", "feImage"),
        ("<iframe xmlns=\"http://www.w3.org/1999/xhtml\"/>", "iframe"),
        ("<g xmlns=\"http://www.w3.org/1999/xhtml\"/>", "g"),
        ("<SCRIPT/>", "SCRIPT"),
    ] {
        let failed = rewritten(content);
        assert!(
            matches!(&failed, Err(DrawingRejection::Element(found)) if found == name),
            "{content}: {failed:?}"
        );
    }
    assert!(matches!(
        rewrite("<svg/>", "drawing", 0, false),
        Err(DrawingRejection::Element(_))
    ));
    assert!(matches!(
        rewrite("<svg", "drawing", 0, false),
        Err(DrawingRejection::Unreadable(_))
    ));
    let entities = "<!DOCTYPE svg [<!ENTITY a \"b\">]><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1 1\"/>";
    assert!(matches!(
        rewrite(entities, "drawing", 0, false),
        Err(DrawingRejection::Unreadable(_))
    ));
    for size in [
        "",
        "viewBox=\"0 0 0 1\"",
        "viewBox=\"0 0 NaN 1\"",
        "viewBox=\"1 1\"",
    ] {
        let svg = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" {size}/>");
        assert!(
            matches!(
                rewrite(&svg, "drawing", 0, false),
                Err(DrawingRejection::NoSize)
            ),
            "{size}"
        );
    }
    let large = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1e9 1\"/>";
    assert!(matches!(
        rewrite(large, "drawing", 0, false),
        Err(DrawingRejection::TooLarge)
    ));
}

#[test]
fn what_is_not_known_is_left_out() {
    for (content, expected) in [
        (
            "<g onclick=\"x\" data-id=\"1\" tabindex=\"0\" font-family=\"x\"/>",
            "<g></g>",
        ),
        (
            "<image href=\"https://a.example/b.png\"/><use href=\"#a\"/><style>x</style>",
            "",
        ),
        (
            "<rect x=\"1.23456\" width=\"10%\" height=\"NaN\" y=\"url(x)\" rx=\"&quot;\"/>",
            "<rect x=\"1.234\" width=\"10%\"></rect>",
        ),
        (
            "<path d=\"M0,0L1.50000,2e1\" style=\"fill:url(https://a.example/#b);stroke-width:2\"/>",
            "<path d=\"M0,0L1.500,2e1\" style=\"stroke-width:2\"></path>",
        ),
        (
            "<path style=\"behavior:url(x);position:fixed;stroke-width:2;background:red\"/>",
            "<path style=\"stroke-width:2\"></path>",
        ),
        ("loose text<!-- a comment --><?x y?>", ""),
        (
            "<text>a &lt;b&gt; &amp; \"c\"</text>",
            "<text>a &lt;b&gt; &amp; &quot;c&quot;</text>",
        ),
        (
            "<circle r=\"1\" clip-path=\"url(https://a.example/#b)\" mask=\"none\"/>",
            "<circle r=\"1\" mask=\"none\"></circle>",
        ),
        (
            "<switch><text>one</text><text>two</text></switch>",
            "<g><text>one</text></g>",
        ),
    ] {
        assert_eq!(body(content), expected, "{content}");
    }
}

#[test]
fn links_lead_to_https_or_nowhere() {
    for (target, is_link) in [
        ("https://example.com/?a=1&amp;b='2'", true),
        ("http://example.com/", false),
        ("HTTPS://example.com/", false),
        ("javascript:alert(1)", false),
        (" https://example.com/", false),
        ("https://example.com/ x", false),
        ("//example.com/", false),
        ("data:text/html,x", false),
        ("#D0", false),
        ("", false),
    ] {
        let found = body(&format!(
            "<a xlink:href=\"{target}\" target=\"_top\" onclick=\"x\"><text>x</text></a>"
        ));
        let expected = if is_link {
            let target = target.replace('\'', "&#39;");
            format!("<a href=\"{target}\" rel=\"noopener noreferrer\"><text>x</text></a>")
        } else {
            "<g><text>x</text></g>".to_owned()
        };
        assert_eq!(found, expected);
    }
}

#[test]
fn names_are_the_drawings_own() {
    let drawn = "<style>#drawing #end path{stroke-width:1}#drawing .a.b>rect{stroke-width:2}#drawing [id$=\"nd\"]{opacity:1}\
        #drawing .gone{opacity:0}#drawing [data-look=\"neo\"] rect{opacity:0}</style>\
        <defs><marker id=\"end\"><path d=\"M0\"/></marker><marker id=\"end\"/><g id=\"unused\"/></defs>\
        <g class=\"a b c&lt;d\"><rect marker-end=\"url(#end)\" marker-start=\"url(#other)\"/></g>";
    assert_eq!(
        body(drawn),
        "<defs><marker id=\"D3-0\"><path d=\"M0\"></path></marker><marker></marker><g></g></defs>\
         <g class=\"m-a m-b\"><rect marker-end=\"url(#D3-0)\"></rect></g>"
    );
    assert_eq!(
        rules(drawn),
        "#D3 #D3-0 path{stroke-width:1}#D3 .m-a.m-b>rect{stroke-width:2}#D3 #D3-0{opacity:1}"
    );
}

#[test]
fn styles_stay_within_the_drawing() {
    for (sheet, expected) in [
        (
            "body{opacity:0}*{opacity:0}:root{opacity:0}#drawingx{opacity:0}.a #drawing{opacity:0}",
            "",
        ),
        (
            "@import url(https://a.example/b.css);#drawing rect{opacity:1}",
            "",
        ),
        (
            "@keyframes a{from{opacity:0}to{opacity:1}}#drawing rect{opacity:.5}",
            "#D3 rect{opacity:.5}",
        ),
        (
            "@media print{body{opacity:0}}#drawing rect , body{opacity:1}",
            "#D3 rect{opacity:1}",
        ),
        (
            "#drawing rect{opacity:1;background:url(https://a.example/b)}",
            "#D3 rect{opacity:1}",
        ),
        (
            "#drawing rect:hover{opacity:1}#drawing rect~a{opacity:1}#drawing rect::before{content:'x'}",
            "",
        ),
        ("#drawing rect{font-size:expression(alert(1))}", ""),
        (
            "#drawing rect{opacity:1 !important;opacity:\\31}",
            "#D3 rect{opacity:1!important}",
        ),
        ("#drawing rect{opacity:1", ""),
        (
            "#drawing span,#drawing p{opacity:1}#drawing div{opacity:1}",
            "#D3 tspan{opacity:1}#D3 text{opacity:1}",
        ),
    ] {
        let drawn = format!("<style>{}</style><rect/>", sheet.replace('>', "&gt;"));
        assert_eq!(rules(&drawn), expected, "{sheet}");
    }
}

#[test]
fn every_colour_has_a_counterpart() {
    let drawn = "<style>#drawing{fill:#333}#drawing rect{stroke:red;fill:none;color:beef}</style>\
        <rect fill=\"#FF0000\" stroke=\"rgba(255, 255, 255, 0.5)\"/><rect fill=\"currentColor\"/>";
    assert_eq!(
        body(drawn),
        "<rect fill=\"var(--c0)\" stroke=\"var(--c1)\"></rect><rect fill=\"currentColor\"></rect>"
    );
    let rules = rules(drawn);
    assert!(rules.starts_with("#D3{--c0:#ff0000;--c1:#ffffff80;--c2:#333333;--blend:multiply}@media screen and (prefers-color-scheme:dark){#D3{--c0:#"), "{rules}");
    assert!(
        rules.ends_with("#D3{fill:var(--c2)}#D3 rect{stroke:var(--c0);fill:none}"),
        "{rules}"
    );
    // A drawing for dark pages stays unchanged on them; light ink alone does not make a drawing dark.
    let ink = "<style>#drawing{fill:#eee}</style>";
    assert!(self::rules(ink).starts_with("#D3{--c0:#eeeeee;--blend:multiply}"));
    let dark = made(ink, true).unwrap();
    assert!(
        dark.contains("dark){#D3{--c0:#eeeeee;--blend:multiply}}"),
        "{dark}"
    );
}

#[test]
fn what_can_be_read_can_be_read_in_both_schemes() {
    let contrast = |one: &str, other: &str| {
        let luminance = |colour| super::colours::luminance_of(colour).unwrap() + 0.05;
        let (one, other) = (luminance(one), luminance(other));
        one.max(other) / one.min(other)
    };
    let counterpart = |colour: &str| {
        let mut palette = Palette::default();
        palette.reference(colour).unwrap();
        let mut rules = String::new();
        palette.write(&mut rules, "D0", false);
        let at = rules.rfind("--c0:").unwrap() + "--c0:".len();
        rules[at..at + 7].to_owned()
    };
    for (ink, ground) in [
        ("#333333", "#ececff"),
        ("#0b3d17", "#d3f9d8"),
        ("#ffffff", "#5f3dc4"),
        ("#555555", "#ffffff"),
        ("black", "yellow"),
        ("#c92a2a", "#ffe3e3"),
    ] {
        let (light, dark) = (
            contrast(ink, ground),
            contrast(&counterpart(ink), &counterpart(ground)),
        );
        // Saturated grounds are lifted, and no ink is brighter than white: what could be read can be.
        assert!(
            dark >= (light * 0.9).min(4.5),
            "{ink} on {ground}: {light:.1}, {dark:.1}"
        );
    }
    assert_eq!(counterpart("white"), "#202020");
}

#[test]
fn labels_in_html_become_lines_of_text() {
    let label = |width: u32, style: &str, content: &str| {
        body(&format!(
            "<foreignObject width=\"{width}\" height=\"48\"><div xmlns=\"http://www.w3.org/1999/xhtml\" style=\"{style}\">\
             <span class=\"nodeLabel\">{content}</span></div></foreignObject>"
        ))
    };
    let line = |x: &str, y: u32, content: &str| {
        format!("<tspan class=\"m-nodeLabel l\" x=\"{x}\" y=\"{y}\" dy=\".35em\">{content}</tspan>")
    };
    let middle = |lines: String| format!("<text style=\"text-anchor:middle\">{lines}</text>");
    for (width, style, content, expected) in [
        (
            100,
            "white-space:nowrap",
            "<p>one  two</p>",
            middle(line("50", 24, "one two")),
        ),
        (
            100,
            "white-space:nowrap",
            "<p>one<br/>two</p>",
            middle(line("50", 12, "one") + &line("50", 36, "two")),
        ),
        (
            50,
            "",
            "<p>one two three</p>",
            middle(line("25", 8, "one") + &line("25", 24, "two") + &line("25", 40, "three")),
        ),
        (
            60,
            "",
            "<p>one <b>two</b> <em>it</em></p>",
            middle(
                line("30", 12, "one<tspan font-weight=\"bold\"> two</tspan>")
                    + &line("30", 36, "<tspan font-style=\"italic\">it</tspan>"),
            ),
        ),
        (
            200,
            "text-align:left",
            "<p>&lt;img onerror=&quot;x&quot;&gt;</p>",
            format!(
                "<text style=\"text-anchor:start\">{}</text>",
                line("0", 24, "&lt;img onerror=&quot;x&quot;&gt;")
            ),
        ),
        (
            100,
            "",
            "<img src=\"https://a.example/\" onerror=\"x\"/><script>a</script>",
            middle(line("50", 24, "a")),
        ),
        (100, "", "<p> </p>", String::new()),
    ] {
        assert_eq!(label(width, style, content), expected, "{content}");
    }
}
