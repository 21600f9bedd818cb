//! The page on which a visitor pays at the provider `dev`.

use http::HeaderValue;
use maud::{Markup, html};

use super::objects::DevPurchase;
use crate::http::problem_page::shell;
use crate::stripe::{amounts, currencies};

/// Policy of the page. Its form leads on to another origin, the page's on which the checkout was begun.
pub(super) const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
);

/// Asks how the payment is to go.
pub(super) fn pay(bought: &DevPurchase) -> Markup {
    let amount = amounts::from_provider(bought.amount, &bought.currency);
    let price = currencies::format_amount(amount.unwrap_or(bought.amount), &bought.currency);
    shell(
        "Pretend to pay",
        &html! {
            main {
                h1 { "Pretend to pay" }
                p { b { (bought.name) } ": " (price) @if bought.recurring { " every month" } }
                p {
                    "This page is not real, and no money moves: the server runs with " code { "--dev" }
                    " and no payment provider is configured."
                }
                form method="post" action={ "/_svc/dev/pay/" (bought.id) } {
                    label for="email" { "E-mail" }
                    input.field #email name="email" type="email" value=(bought.email.as_deref().unwrap_or("visitor@example.com"));
                    button type="submit" name="outcome" value="pay" { "Pay" }
                    " "
                    button.plain type="submit" name="outcome" value="fail" { "Fail" }
                    " "
                    button.plain type="submit" name="outcome" value="cancel" { "Cancel" }
                }
            }
        },
    )
}
