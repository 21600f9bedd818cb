//! Converts amounts between ISO 4217 and the provider's minor units, where they differ.
//!
//! <https://docs.stripe.com/currencies#special-cases>: ISK and UGX have no minor unit in ISO 4217 and two digits there; MGA has two
//! in ISO 4217 and none there.

/// Factor by which an amount of a currency is multiplied for the provider, as a fraction.
fn provider_factor(currency: &str) -> (i64, i64) {
    match currency {
        "isk" | "ugx" => (100, 1),
        "mga" => (1, 100),
        _ => (1, 1),
    }
}

/// Converts an amount in minor units to the provider's; `None` if it cannot be expressed.
pub(super) fn amount_to_provider(amount: i64, currency: &str) -> Option<i64> {
    let (times, over) = provider_factor(currency);
    let amount = amount.checked_mul(times)?;
    (amount % over == 0).then_some(amount / over)
}

/// Converts an amount of the provider to minor units; `None` if it cannot be expressed.
pub(super) fn amount_from_provider(amount: i64, currency: &str) -> Option<i64> {
    let (times, over) = provider_factor(currency);
    let amount = amount.checked_mul(over)?;
    (amount % times == 0).then_some(amount / times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_go_there_and_come_back() {
        for (currency, ours, theirs) in [
            ("usd", 500, Some(500)),
            ("jpy", 500, Some(500)),
            ("kwd", 1_230, Some(1_230)),
            ("isk", 500, Some(50_000)),
            ("ugx", 500, Some(50_000)),
            ("mga", 500, Some(5)),
            ("mga", 501, None),
            ("isk", i64::MAX, None),
        ] {
            assert_eq!(
                amount_to_provider(ours, currency),
                theirs,
                "{ours} {currency}"
            );
            if let Some(theirs) = theirs {
                assert_eq!(
                    amount_from_provider(theirs, currency),
                    Some(ours),
                    "{currency}"
                );
            }
        }
        assert_eq!(amount_from_provider(550, "isk"), None);
    }
}
