//! The platform's own page of a sign-in: the choice between providers.

use std::sync::Arc;

use maud::{Markup, html};

use super::providers::Provider;
use crate::http::problem_page::shell;

/// Offers providers; each is a link, so that nothing of the page needs scripts or a form.
pub(super) fn provider_choice_page(
    slug: &str,
    offered: &[Arc<Provider>],
    return_to: &str,
) -> Markup {
    let address = |provider: &Provider| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("provider", &provider.settings.name);
        query.append_pair("return_to", return_to);
        format!("/{slug}/auth/login?{}", query.finish())
    };
    shell(
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
