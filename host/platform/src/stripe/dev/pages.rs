//! The payment page of the provider `dev`.

use http::HeaderValue;
use maud::{Markup, html};

use super::objects::SimulatedPurchase;
use crate::http::problem_page::page_shell;
use crate::stripe::{amounts, currencies};

/// Content security policy of the page. Its form leads to another origin, that of the page on which the checkout began.
pub(super) const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
);

/// Renders the page that asks for the outcome of the payment.
pub(super) fn payment_page(bought: &SimulatedPurchase) -> Markup {
    let amount = amounts::amount_from_provider(bought.amount, &bought.currency);
    let price = currencies::format_amount(amount.unwrap_or(bought.amount), &bought.currency);
    page_shell(
        "Pretend to pay",
        &html! {
            main {
                h1 { "Pretend to pay" }
                p { b { (bought.name) } ": " (price) @if let Some(interval) = bought.interval { " every " (interval.as_str()) } }
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
