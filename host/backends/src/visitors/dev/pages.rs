//! The sign-in form of the development issuer.

use maud::{Markup, html};

use crate::http::problem_page::page_shell;

/// Renders the form for a name and an e-mail address; `wrong` describes an input that was refused.
pub(super) fn sign_in_form(name: &str, email: &str, wrong: Option<&str>) -> Markup {
    page_shell(
        "Developer sign-in",
        &html! {
            main {
                h1 { "Developer sign-in" }
                p { "This is no real sign-in: whoever you say you are is believed. It is there because the server runs with " code { "--dev" } "." }
                form method="post" {
                    label for="name" { "Name" }
                    input.field #name name="name" value=(name) required maxlength="100" autocomplete="name";
                    label for="email" { "E-mail address" }
                    input.field #email name="email" value=(email) type="email" required maxlength="200" autocomplete="email"
                        aria-describedby=[wrong.map(|_| "wrong")] aria-invalid=[wrong.map(|_| "true")];
                    @if let Some(wrong) = wrong { p.wrong #wrong role="alert" { (wrong) } }
                    button type="submit" { "Sign in" }
                    " "
                    button.plain type="submit" name="cancel" value="1" formnovalidate { "Cancel" }
                }
            }
        },
    )
}
