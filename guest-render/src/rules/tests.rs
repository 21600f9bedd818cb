//! Rules as their authors write them, and faults with their places.

use super::*;

fn files(redirects: Option<&[u8]>, headers: Option<&[u8]>) -> RuleFiles {
    RuleFiles {
        redirects: redirects.map(<[u8]>::to_vec),
        headers: headers.map(<[u8]>::to_vec),
        within_site: false,
    }
}

fn redirects(text: &str) -> Result<Vec<Redirect>, Fault> {
    judge(&files(Some(text.as_bytes()), None)).map(|rules| rules.redirects)
}

fn headers(text: &str) -> Result<Vec<HeaderRule>, Fault> {
    judge(&files(None, Some(text.as_bytes()))).map(|rules| rules.headers)
}

/// Writes a pattern, with `{}` for a placeholder.
fn pattern_text(pattern: &[PatternPart]) -> String {
    let parts = pattern.iter().map(|part| match part {
        PatternPart::Text(text) => text.clone(),
        PatternPart::Placeholder => "{}".to_owned(),
        PatternPart::Rest => "{*}".to_owned(),
    });
    parts.collect()
}

fn target_text(target: &Target) -> String {
    let write = |parts: &[TargetPart]| {
        let parts = parts.iter().map(|part| match part {
            TargetPart::Text(text) => text.clone(),
            TargetPart::Capture(number) => format!("{{{number}}}"),
        });
        parts.collect::<String>()
    };
    let query = target
        .query
        .as_ref()
        .map(|query| format!("?{}", write(query)));
    let fragment = target.fragment.as_ref().map(|text| format!("#{text}"));
    format!(
        "{}/{}{}{}",
        target.origin.as_deref().unwrap_or_default(),
        write(&target.path),
        query.unwrap_or_default(),
        fragment.unwrap_or_default()
    )
}

fn redirect_text(line: &str) -> String {
    let rules = redirects(line).unwrap_or_else(|fault| panic!("{line}: {fault:?}"));
    let [rule] = rules.as_slice() else {
        panic!("{line}: {rules:?}")
    };
    let Redirect {
        pattern,
        target,
        status,
    } = rule;
    format!(
        "{} > {} {status}",
        pattern_text(pattern),
        target_text(target)
    )
}

#[test]
fn redirects_have_their_forms() {
    for (line, expected) in [
        ("/a /b", "a > /b 302"),
        ("/ /b 301", " > /b 301"),
        ("/a / 303", "a > / 303"),
        ("  /a\t \t/b   307  ", "a > /b 307"),
        ("/a /b 308 # why", "a > /b 308"),
        ("/a /b # why", "a > /b 302"),
        ("/a/ /b/", "a/ > /b/ 302"),
        ("/* /index.html 200", "{*} > /index.html 200"),
        ("/blog/* /news/:splat", "blog/{*} > /news/{0} 302"),
        ("/blog* /:splat", "blog{*} > /{0} 302"),
        ("/:a/:b_2/x /:b_2-:a.html", "{}/{}/x > /{1}-{0}.html 302"),
        (
            "/:year/* /p?y=:year&p=:splat#top",
            "{}/{*} > /p?y={0}&p={1}#top 302",
        ),
        ("/a https://example.com", "a > https://example.com/ 302"),
        (
            "/a https://Example.com:8443/x?y#z",
            "a > https://example.com:8443/x?y#z 302",
        ),
        ("/a https://example.com?x", "a > https://example.com/?x 302"),
        (
            "/a/* https://example.com/:splat",
            "a/{*} > https://example.com/{0} 302",
        ),
        ("/caf%C3%A9%20x /b", "caf\u{e9} x > /b 302"),
        ("/caf\u{e9} /th\u{e9}", "caf\u{e9} > /th%C3%A9 302"),
        ("/a /b%2fc<d>", "a > /b%2Fc%3Cd%3E 302"),
        ("/%2A /b", "* > /b 302"),
        ("/a:b/%3Ac /b%3Ac", "a:b/:c > /b%3Ac 302"),
        ("/a%25b /b", "a%b > /b 302"),
        ("/.well-known/x /b", ".well-known/x > /b 302"),
        ("\u{feff}/a /b", "a > /b 302"),
    ] {
        assert_eq!(redirect_text(line), expected, "{line}");
    }
    let many = redirects("# first\r\n\r\n/a /b\r\n  # second\n/c /d 200").unwrap();
    assert_eq!(many.len(), 2);
    assert!(redirects("").unwrap().is_empty());
}

#[test]
fn faults_of_redirects_are_named_with_their_lines() {
    let long = format!("/a{} /b", "a".repeat(65_536));
    let many = "\n".repeat(1_000) + "/a /b";
    let repeated = format!("/:a /{}", ":a".repeat(33));
    let captures: String = (0..17).map(|number| format!("/:p{number}")).collect();
    let captures = format!("{captures} /b");
    for (text, line, said) in [
        ("/a", 1, "a path and a target"),
        ("/a # /b", 1, "a path and a target"),
        ("\n\na /b", 3, "`a` is no path"),
        ("https://example.com/a /b", 1, "leave scheme and host out"),
        ("/a?x=1 /b", 1, "Query strings"),
        ("/a#b /b", 1, "%23"),
        ("/a\\b /b", 1, "%5C"),
        ("/a id=:id /b/:id 301", 1, "Query strings"),
        ("/a /b 404", 1, "`404`"),
        ("/a /b 410", 1, "`410`"),
        ("/a /b 0301", 1, "`0301`"),
        ("# x\n/a /b 200!", 2, "`!`"),
        ("/a /b 301!", 1, "`!`"),
        ("/a /b 302 Country=de", 1, "no conditions"),
        ("/a /b Country=de", 1, "no conditions"),
        ("/a /b 301 302", 1, "ends with its status"),
        ("/a/*/b /c", 1, "at the end"),
        ("/** /c", 1, "at the end"),
        ("/a//b /c", 1, "empty segment"),
        ("//a /c", 1, "empty segment"),
        ("/../a /c", 1, "`..`"),
        ("/%2e%2e/a /c", 1, "`..`"),
        ("/a%2fb /c", 1, "encoded slash"),
        ("/a%00 /c", 1, "encoded slash or control"),
        ("/a%0a /c", 1, "encoded slash or control"),
        ("/a% /c", 1, "%25"),
        ("/a%zz /c", 1, "%25"),
        ("/a%ff /c", 1, "%25"),
        ("/: /c", 1, "no placeholder"),
        ("/:1 /c", 1, "no placeholder"),
        ("/:a.html /c", 1, "no placeholder"),
        ("/:a* /c", 1, "whole segment"),
        ("/:a/:a /c", 1, "twice"),
        ("/:splat /c", 1, "another name"),
        (captures.as_str(), 1, "16 placeholders"),
        ("/a b", 1, "`b` is no target"),
        ("/a http://example.com", 1, "https://"),
        ("/a HTTPS://example.com", 1, "https://"),
        ("/a javascript:alert(1)", 1, "https://"),
        ("/a //example.com", 1, "two slashes"),
        ("/a https://example.com//x", 1, "two slashes"),
        ("/a https://", 1, "host"),
        ("/a https://user@example.com", 1, "host"),
        ("/* https://example.com:splat", 1, "host"),
        ("/* https://:splat/", 1, "host"),
        ("/a https://ex\u{e4}mple.com", 1, "host"),
        ("/a https://.example.com", 1, "host"),
        ("/a https://example.com:123456", 1, "host"),
        ("/a https://example.com/ 200", 1, "Nothing is fetched"),
        ("/a /b?c 200", 1, "a file"),
        ("/a /b#c 200", 1, "a file"),
        ("/a /../b", 1, "`..`"),
        ("/a /x/%2E%2e/b", 1, "`..`"),
        ("/a /x/.%2e", 1, "`..`"),
        ("/a /./b", 1, "`.`"),
        ("/a/* /b/*", 1, ":splat"),
        ("/a /b/:c", 1, "no placeholder `:c`"),
        ("/a/:c /b/:cd", 1, "no placeholder `:cd`"),
        ("/a /b%4", 1, "%25"),
        (repeated.as_str(), 1, "32 placeholders"),
        ("/x /y\n/a\u{0} /b", 2, "control character"),
        ("/a /b\r/c /d", 1, "control character"),
        ("/a /b\r\r\n", 1, "control character"),
        ("/a /b\u{85}", 1, "control character"),
        ("# \u{1b}", 1, "control character"),
        ("/a\u{a0}/b", 1, "none of ASCII's"),
        ("/a /b\u{2028}/c /d", 1, "none of ASCII's"),
        (many.as_str(), 1_001, "1000 lines"),
        (long.as_str(), 1, "65536 bytes"),
    ] {
        let fault = redirects(text).unwrap_err();
        let begin: String = text.chars().take(40).collect();
        assert_eq!(
            (fault.file, fault.line),
            (RuleFile::Redirects, line),
            "{begin}: {fault:?}"
        );
        assert!(fault.reason.contains(said), "{begin}: {fault:?}");
        assert!(
            fault.reason.ends_with('.') && fault.reason.len() < 400,
            "{fault:?}"
        );
    }
    let fault = judge(&files(Some(b"/a /b\n\n/c \xff"), None)).unwrap_err();
    assert_eq!(fault.line, 3);
    let last = "\n".repeat(999) + "/a /b\n";
    assert_eq!(redirects(&last).unwrap().len(), 1);
}

#[test]
fn redirects_of_a_share_stay_within_it() {
    let mut site = files(Some(b"/a /b\n/c https://example.com/"), None);
    judge(&site).unwrap();
    site.within_site = true;
    let fault = judge(&site).unwrap_err();
    assert_eq!(fault.line, 2);
    assert!(fault.reason.contains("own paths"), "{fault:?}");
}

#[test]
fn headers_have_their_forms() {
    let text = "# all\n/*\n  X-Frame-Options: DENY\n  cache-control:max-age=60\n  Cache-Control : public\n\
        X-Mine: a: b # no comment\n  X-Mine: c\n\n/assets/:name\n\tLink: </a>; rel=preload\n";
    let rules = headers(text).unwrap();
    let read: Vec<_> = rules
        .iter()
        .map(|rule| {
            let headers = rule.headers.iter();
            let headers: Vec<_> = headers
                .map(|header| format!("{}={}", header.name, header.value))
                .collect();
            (pattern_text(&rule.pattern), headers)
        })
        .collect();
    let expected = [
        (
            "{*}".to_owned(),
            vec![
                "x-frame-options=DENY".to_owned(),
                "cache-control=max-age=60, public".to_owned(),
                "x-mine=a: b # no comment".to_owned(),
                "x-mine=c".to_owned(),
            ],
        ),
        (
            "assets/{}".to_owned(),
            vec!["link=</a>; rel=preload".to_owned()],
        ),
    ];
    assert_eq!(read, expected);
    assert!(headers("# nothing").unwrap().is_empty());
    for name in [
        "Cache-Control",
        "Content-Disposition",
        "Content-Language",
        "Content-Security-Policy",
        "Content-Security-Policy-Report-Only",
        "Cross-Origin-Opener-Policy",
        "Cross-Origin-Embedder-Policy",
        "Cross-Origin-Resource-Policy",
        "Link",
        "Permissions-Policy",
        "Referrer-Policy",
        "Service-Worker-Allowed",
        "Timing-Allow-Origin",
        "X-Frame-Options",
        "X-Robots-Tag",
        "X-Anything_2",
        "x-UA-Compatible",
    ] {
        let rules = headers(&format!("/\n {name}: v")).unwrap();
        assert_eq!(rules[0].headers[0].name, name.to_ascii_lowercase());
    }
    headers("/\n Content-Type: text/plain; charset=utf-8").unwrap();
}

#[test]
fn headers_may_be_for_paths_with_an_ending() {
    for (path, expected) in [
        ("/*", "{*}"),
        ("/*.js", "{*}.js"),
        ("/assets/*.%6as", "assets/{*}.js"),
        ("/a-*", "a-{*}"),
        ("/a/*/b/c.js", "a/{*}/b/c.js"),
        ("/a/*/", "a/{*}/"),
        ("/*..", "{*}.."),
        ("/:a/*.js", "{}/{*}.js"),
    ] {
        let rules = headers(&format!("{path}\n X-A: b")).unwrap();
        assert_eq!(pattern_text(&rules[0].pattern), expected, "{path}");
    }
}

#[test]
fn faults_of_headers_are_named_with_their_lines() {
    let many: String = (0..101)
        .map(|number| format!("/{number}\nX-A: b\n"))
        .collect();
    let long = format!("/\nX-A: {}", "b".repeat(8_193));
    let joined = format!(
        "/\nCache-Control: {0}\nCache-Control: {0}",
        "b".repeat(5_000)
    );
    let crowded = "/\n".to_owned() + &"X-A: b\n".repeat(101);
    let name = format!("/\nX-{}: b", "a".repeat(127));
    for (text, line, said) in [
        ("X-A: b\n/a", 1, "write the path first"),
        ("/a\n/b\n X-A: b", 1, "no headers"),
        ("/a\n X-A: b\n/b\n# X-B: c", 3, "no headers"),
        (
            "https://example.com/a\n X-A: b",
            1,
            "leave scheme and host out",
        ),
        ("/a?b\n X-A: b", 1, "Query strings"),
        ("/*/*.js\n X-A: b", 1, "stands once"),
        ("/**\n X-A: b", 1, "stands once"),
        ("/*/:a\n X-A: b", 1, "before `*`"),
        ("/a/*:b\n X-A: b", 1, "before `*`"),
        ("/a/*//b\n X-A: b", 1, "empty segment"),
        ("/a/*/../b\n X-A: b", 1, "`..`"),
        ("/a/*%2fb\n X-A: b", 1, "encoded slash"),
        ("/a\n X-A", 2, "`X-A` is no header"),
        ("/a\n ! X-A", 2, "takes no header away"),
        ("/a\n X-A:", 2, "no value"),
        ("/a\n X-A: \t", 2, "no value"),
        ("/a\n : b", 2, "none of the headers"),
        ("/a\n X-: b", 2, "none of the headers"),
        ("/a\n X-A\u{e4}: b", 2, "none of the headers"),
        ("/a\n X A: b", 2, "none of the headers"),
        ("/a\n Set-Cookie: a=b", 2, "none of the headers"),
        ("/a\n set-cookie: a=b", 2, "none of the headers"),
        ("/a\n Location: /b", 2, "none of the headers"),
        ("/a\n Content-Length: 1", 2, "none of the headers"),
        ("/a\n Content-Encoding: br", 2, "none of the headers"),
        ("/a\n Transfer-Encoding: chunked", 2, "none of the headers"),
        ("/a\n Connection: close", 2, "none of the headers"),
        (
            "/a\n Access-Control-Allow-Origin: *",
            2,
            "none of the headers",
        ),
        (
            "/a\n Strict-Transport-Security: max-age=0",
            2,
            "none of the headers",
        ),
        (
            "/a\n CDN-Cache-Control: max-age=1",
            2,
            "none of the headers",
        ),
        ("/a\n ETag: \"x\"", 2, "none of the headers"),
        ("/a\n Vary: Cookie", 2, "none of the headers"),
        ("/a\n Clear-Site-Data: \"*\"", 2, "none of the headers"),
        ("/a\n X-Content-Type-Options: none", 2, "platform's own"),
        ("/a\n x-CONTENT-type-options: none", 2, "platform's own"),
        ("/a\n X-Request-Id: 1", 2, "platform's own"),
        ("/a\n X-Accel-Redirect: /secret", 2, "platform's own"),
        ("/a\n X-Sendfile: /etc/passwd", 2, "platform's own"),
        ("/a\n X-Sendfile2: /etc/passwd 0-", 2, "platform's own"),
        (
            "/a\n X-LIGHTTPD-send-file: /etc/passwd",
            2,
            "platform's own",
        ),
        ("/a\n X-Forwarded-For: 127.0.0.1", 2, "platform's own"),
        ("/a\n X-Svc-Anything: 1", 2, "platform's own"),
        ("/a\n X-A: b\rX-C: d", 2, "control character"),
        ("/a\n X-A: \u{0}", 2, "control character"),
        ("/a\n X-A: \u{e4}", 2, "none of ASCII's"),
        ("/a\n Content-Type: html", 2, "no media type"),
        (
            "/a\n Content-Type: text/html, text/plain",
            2,
            "no media type",
        ),
        ("/a\n Content-Type: a/b\n content-type: a/b", 3, "twice"),
        (many.as_str(), 201, "100 paths"),
        (long.as_str(), 2, "8192 bytes"),
        (joined.as_str(), 3, "8192 bytes"),
        (crowded.as_str(), 102, "100 headers"),
        (name.as_str(), 2, "none of the headers"),
    ] {
        let fault = headers(text).unwrap_err();
        let begin: String = text.chars().take(40).collect();
        assert_eq!(
            (fault.file, fault.line),
            (RuleFile::Headers, line),
            "{begin}: {fault:?}"
        );
        assert!(fault.reason.contains(said), "{begin}: {fault:?}");
    }
}

#[test]
fn the_largest_files_are_read_in_time() {
    let file = |line: &str, most: usize| {
        let lines = (64 << 10) / line.len();
        line.repeat(lines.min(most))
    };
    assert_eq!(
        redirects(&file("/:a/:b/:c/* /:a-:b-:c-:splat\n", 1_000))
            .unwrap()
            .len(),
        1_000
    );
    let colons = format!("/a /{}", ":".repeat(65_000));
    redirects(&colons).unwrap();
    let stars = format!("/{} /b", "*".repeat(65_000));
    redirects(&stars).unwrap_err();
    headers(&file("/a\nX-A:b\n", 100)).unwrap();
    headers(&file("/", 65_000)).unwrap_err();
}
