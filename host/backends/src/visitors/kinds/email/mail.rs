//! Texts of the mails.

use maud::{DOCTYPE, Markup, html};

/// Style of the code in a mail, which knows no style sheet.
const CODE_STYLE: &str = "font-size: 2em; letter-spacing: 0.2em; font-family: monospace";
/// Style of a mail's text.
const TEXT_STYLE: &str = "font-family: sans-serif";

/// Subject and content of a mail.
#[derive(Clone, Debug)]
pub(super) struct MailContent {
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// Writes the mail with a code. Nothing in it is a text of the visitor, and nothing in it signs in when it is clicked.
pub(super) fn code_mail(code: &str, project: &str, place: &str) -> MailContent {
    let project = one_line(project);
    let asked = format!("Your code to sign in to “{project}” ({place}):");
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

/// Returns an owner's text as one line, so that it cannot look like the rest of the mail.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
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
        assert!(lines[0].contains("Shop Your code: 000000"), "{lines:?}");
        assert!(
            !mail.html.contains("<img") && !mail.html.contains("<a "),
            "{}",
            mail.html
        );
    }
}
