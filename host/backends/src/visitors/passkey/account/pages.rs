//! The page of an account: the passkeys that it has, and a form for another.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use maud::{Markup, PreEscaped, html};

use super::OpenAccount;
use crate::http::problem_page::page_shell;
use crate::visitors::passkey::PasskeyPrompt;
use crate::visitors::passkey::pages::{SCRIPT, answer_fields, script_notes};

/// Path of the page.
pub(super) const PATH: &str = "/_svc/auth/passkeys";

/// Renders the page that asks for a passkey before the account is shown; `wrong` describes why it is shown again.
pub(super) fn confirmation_page(
    open: &OpenAccount,
    prompt: &PasskeyPrompt,
    wrong: Option<&str>,
) -> Markup {
    page_shell(
        "Passkeys",
        &html! {
            main {
                h1 { "Passkeys" }
                p { "Show one of your passkeys first: this page changes how you sign in here and on other pages." }
                (script_notes(wrong))
                form method="post" action=(open.at.form_url(PATH)) data-passkey="get" data-options=(prompt.options) {
                    (answer_fields(prompt))
                    button type="submit" { "Go on with a passkey" }
                }
                p { a.soft href=(back(open)) { "Back to the page" } }
            }
            script { (PreEscaped(SCRIPT)) }
        },
    )
}

/// Returns the address of the frontend that the visit began on.
fn back(open: &OpenAccount) -> String {
    format!("{}{}", open.at.page.origin, open.at.sign_in.return_to)
}

/// Renders the page; `wrong` describes why a form changed nothing.
pub(super) fn account_page(
    open: &OpenAccount,
    prompt: &PasskeyPrompt,
    wrong: Option<&str>,
) -> Markup {
    let action = open.at.form_url(PATH);
    page_shell(
        "Passkeys",
        &html! {
            main {
                h1 { "Passkeys" }
                p { "Of " strong { (open.account.name) } ". Each of them signs you in, here and on other pages where you have used one of them." }
                (script_notes(wrong))
                ul.choices {
                    @for one in &open.passkeys {
                        @let made = one.created_at.to_string();
                        li {
                            form method="post" action=(action) {
                                input type="hidden" name="remove" value=(URL_SAFE_NO_PAD.encode(&one.passkey.credential_id));
                                "Made at " time datetime=(made) { (made) } " "
                                button.plain type="submit" { "Remove" }
                            }
                        }
                    }
                }
                form method="post" action=(action) data-passkey="create" data-options=(prompt.options) {
                    (answer_fields(prompt))
                    button type="submit" { "Add a passkey" }
                }
                p { a.soft href=(back(open)) { "Back to the page" } }
            }
            script { (PreEscaped(SCRIPT)) }
        },
    )
}
