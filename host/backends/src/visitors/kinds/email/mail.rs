//! Texts of the mails.

use maud::{DOCTYPE, Markup, html};

/// Style of the code in a mail, which knows no style sheet.
const CODE_STYLE: &str = "font-size: 2em; letter-spacing: 0.2em; font-family: monospace";
/// Style of a mail's text.
const TEXT_STYLE: &str = "font-family: sans-serif";
/// Most characters of a project's name in a mail.
const MAX_NAME_CHARS: usize = 40;
/// Characters that addresses have, in the forms that programs read as such.
const ADDRESS_MARKS: [char; 12] = [
    '.', '。', '．', '｡', '․', '/', '／', '\\', ':', '：', '@', '＠',
];

/// Subject and content of a mail.
#[derive(Clone, Debug)]
pub(super) struct MailContent {
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// Writes the mail with a code. Nothing in it is a text of the visitor, and nothing in it signs in when it is clicked.
pub(super) fn code_mail(code: &str, project: &str, place: &str) -> MailContent {
    let asked = match plain_name(project) {
        name if name.is_empty() => format!("Your code to sign in at {place}:"),
        name => format!("Your code to sign in to “{name}” ({place}):"),
    };
    let rules =
        "It is valid for 10 minutes, once, in the browser that asked for it. Tell it to nobody.";
    let other = "If you have not asked for it, ignore this mail: without the code nobody signs in.";
    MailContent {
        subject: "Your code to sign in".to_owned(),
        text: format!("{asked}\n\n{code}\n\n{rules}\n{other}\n"),
        html: html_document(
            "Your code to sign in",
            &html! {
                p { (asked) }
                p style=(CODE_STYLE) { (code) }
                p { (rules) br; (other) }
            },
        ),
    }
}

/// Writes the mail of `svc provider check`.
pub(super) fn test_mail() -> MailContent {
    let said = "This is a test of svc. Codes of sign-ins come like this mail.";
    MailContent {
        subject: "A test of your mail server".to_owned(),
        text: format!("{said}\n"),
        html: html_document("A test of your mail server", &html! { p { (said) } }),
    }
}

/// Writes the document of a mail in HTML.
fn html_document(title: &str, content: &Markup) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (title) }
            }
            body style=(TEXT_STYLE) { (content) }
        }
    };
    document.into_string()
}

/// Returns a project's name as a few words of one line. It cannot look like the rest of the mail, and a mail program finds no address in it
/// to make a link of: an owner can have a code sent to any address.
fn plain_name(name: &str) -> String {
    let is_between = |c: char| c.is_whitespace() || c.is_control() || ADDRESS_MARKS.contains(&c);
    let words: Vec<&str> = name.split(is_between).filter(|it| !it.is_empty()).collect();
    let plain = words.join(" ");
    match plain.char_indices().nth(MAX_NAME_CHARS) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owners_text_stays_in_its_place() {
        let name = "Shop\r\n\r\nYour code: 000000 <img src=x>";
        let mail = code_mail("123456", name, "https://shop.example/room");
        assert!(!mail.subject.contains("Shop"));
        let lines: Vec<&str> = mail.text.lines().collect();
        assert_eq!(lines[2], "123456");
        assert!(
            lines[0].contains("Shop Your code 000000 <img src=x>"),
            "{lines:?}"
        );
        assert!(
            !mail.html.contains("<img") && !mail.html.contains("<a "),
            "{}",
            mail.html
        );
    }

    #[test]
    fn an_owners_text_is_no_link() {
        for (name, plain) in [
            ("The St. Gallen Shop", "The St Gallen Shop"),
            (
                "Win at https://evil.example/x now",
                "Win at https evil example x now",
            ),
            ("mail me@evil.example", "mail me evil example"),
            ("://..", ""),
            (&"x".repeat(41), &format!("{}…", "x".repeat(40))),
        ] {
            assert_eq!(plain_name(name), plain);
        }
        let mail = code_mail("123456", "...", "https://shop.example/room");
        assert!(
            mail.text
                .starts_with("Your code to sign in at https://shop.example/room:"),
            "{}",
            mail.text
        );
    }
}
