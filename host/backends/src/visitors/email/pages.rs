//! Pages of a sign-in by e-mail. Their forms work without a script.

use maud::{Markup, html};

use crate::http::problem_page::page_shell;
use crate::visitors::kinds::email::{DevMailbox, MailLimit, MailLimitReached};
use crate::visitors::own_pages::OwnPageSignIn;

/// Path of the forms.
pub(super) const PATH: &str = "/_svc/auth/email";

/// Renders the form for an address; `wrong` describes why it is asked for again.
pub(super) fn address_form(at: &OwnPageSignIn, email: &str, wrong: Option<&str>) -> Markup {
    page_shell(
        "Sign in",
        &html! {
            main {
                h1 { "Sign in" }
                p { "To " strong { (at.page.project.name) } ", with a code that is sent to you. The page learns your e-mail address." }
                form method="post" action=(at.form_url(PATH)) {
                    label for="email" { "E-mail address" }
                    input.field #email name="email" value=(email) type="email" required autofocus maxlength="254" autocomplete="email"
                        aria-describedby=[wrong.map(|_| "wrong")] aria-invalid=[wrong.map(|_| "true")];
                    @if let Some(wrong) = wrong { p.wrong #wrong role="alert" { (wrong) } }
                    button type="submit" { "Send a code" }
                }
                p { a.soft href=(at.way_back()) { "Back to the page" } }
            }
        },
    )
}

/// Renders the form for a code that was sent to an address; `wrong` describes why it is asked for again.
pub(super) fn code_form(at: &OwnPageSignIn, email: &str, wrong: Option<&str>) -> Markup {
    page_shell(
        "Enter the code",
        &html! {
            main {
                h1 { "Enter the code" }
                p { "A mail with six digits is on its way to " strong { (email) } ". They are valid for 10 minutes, in this browser." }
                form method="post" action=(at.form_url(PATH)) {
                    label for="code" { "Code" }
                    input.field #code name="code" required autofocus maxlength="20" inputmode="numeric" autocomplete="one-time-code"
                        aria-describedby=[wrong.map(|_| "wrong")] aria-invalid=[wrong.map(|_| "true")];
                    @if let Some(wrong) = wrong { p.wrong #wrong role="alert" { (wrong) } }
                    button type="submit" { "Sign in" }
                }
                form method="post" action=(at.form_url(PATH)) {
                    input type="hidden" name="email" value=(email);
                    button.plain type="submit" { "Send another code" }
                }
                p {
                    a.soft href=(at.form_url(PATH)) { "Use another address" }
                    " · "
                    a.soft href=(at.way_back()) { "Back to the page" }
                }
            }
        },
    )
}

/// Renders the page about a limit on mails.
pub(super) fn limit_page(at: &OwnPageSignIn, reached: MailLimitReached) -> Markup {
    let whose = match reached.limit {
        MailLimit::Address => "to this address",
        MailLimit::Client => "from your network",
        MailLimit::Project => "for this page",
    };
    let minutes = svc_base::pluralize(reached.wait_seconds.div_ceil(60), "minute");
    page_shell(
        "Too many codes",
        &html! {
            main {
                h1 { "Too many codes" }
                p { "Too many codes were asked for " (whose) ". Try again in " (minutes) "." }
                p { a.soft href=(at.way_back()) { "Back to the page" } }
            }
        },
    )
}

/// Renders the mails that are shown instead of sent.
pub(super) fn mailbox_page(mailbox: &DevMailbox) -> Markup {
    let mails = mailbox.mails();
    page_shell(
        "Mails",
        &html! {
            main {
                h1 { "Mails" }
                p { "These mails are shown here and not sent, because the server runs with " code { "--dev" } " and no " code { "[smtp]" } ". The newest is the first." }
                @if mails.is_empty() { p { "There is none yet." } }
                @for mail in &mails {
                    article {
                        h2 { (mail.subject) }
                        p.soft { "To " (mail.to) }
                        pre { (mail.text) }
                    }
                }
            }
        },
    )
}
