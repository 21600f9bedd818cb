//! The page on which a visitor chooses a provider.

use std::sync::Arc;

use maud::{Markup, html};

use super::providers::SignInProvider;
use crate::http::problem_page::page_shell;

/// Renders the choice of providers. Each is a link, so that the page needs no script and no form.
pub(super) fn provider_choice_page(
    slug: &str,
    offered: &[Arc<SignInProvider>],
    return_to: &str,
) -> Markup {
    let address = |provider: &SignInProvider| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("provider", &provider.settings.name);
        query.append_pair("return_to", return_to);
        format!("/{slug}/auth/login?{}", query.finish())
    };
    page_shell(
        "Sign in",
        &html! {
            main {
                h1 { "Sign in" }
                p { "The page learns your name and, if your provider has checked it, your e-mail address." }
                ul.choices {
                    @for provider in offered {
                        li { a.choice href=(address(provider)) rel="nofollow" { "Continue with " (provider.settings.display_name) } }
                    }
                }
                p { a.soft href=(return_to) { "Back to the page" } }
            }
        },
    )
}
