//! The page of a sign-in by passkey. Browsers offer passkeys to scripts alone, so its script asks, and sends the answer as a form.

use maud::{Markup, PreEscaped, html};

use super::{MAX_NAME_CHARS, PasskeyPrompt, SignInPrompts};
use crate::http::problem_page::page_shell;
use crate::visitors::own_pages::OwnPageSignIn;

/// Path of the page.
pub(super) const PATH: &str = "/_svc/auth/passkey";
/// Script of this page, and of the account's.
pub(super) const SCRIPT: &str = include_str!("../../../../assets/passkeys.js");

/// Renders the place where the script says what is wrong, and who cannot be helped.
pub(super) fn script_notes(wrong: Option<&str>) -> Markup {
    html! {
        p.wrong #wrong role="alert" { @if let Some(wrong) = wrong { (wrong) } }
        noscript { p.wrong { "Browsers offer passkeys to scripts alone. Allow scripts on this page, and load it again." } }
    }
}

/// Renders the fields that the script fills in.
pub(super) fn answer_fields(prompt: &PasskeyPrompt) -> Markup {
    html! {
        input type="hidden" name="challenge" value=(prompt.challenge);
        input type="hidden" name="credential";
    }
}

/// Renders the page; `wrong` describes why it is shown again.
pub(super) fn sign_in_page(
    at: &OwnPageSignIn,
    prompts: &SignInPrompts,
    (name, wrong): (&str, Option<&str>),
) -> Markup {
    let action = at.form_url(PATH);
    let (request, creation) = (&prompts.request, &prompts.creation);
    page_shell(
        "Sign in",
        &html! {
            main {
                h1 { "Sign in" }
                p { "To " strong { (at.page.project.name) } ", with a passkey: your device asks for your finger, your face or its PIN. The page learns the name that you have given." }
                (script_notes(wrong))
                form #request method="post" action=(action) data-passkey="get" data-options=(request.options) {
                    (answer_fields(request))
                    button type="submit" { "Sign in with a passkey" }
                }
                h2 { "Without a passkey yet" }
                form #creation method="post" action=(action) data-passkey="create" data-options=(creation.options) {
                    label for="name" { "Your name" }
                    input.field #name name="name" value=(name) required maxlength=(MAX_NAME_CHARS) autocomplete="name" aria-describedby="wrong";
                    (answer_fields(creation))
                    button type="submit" { "Create a passkey" }
                }
                p { a.soft href=(at.way_back()) { "Back to the page" } }
            }
            script { (PreEscaped(SCRIPT)) }
        },
    )
}
