//! Currencies of ISO 4217 that something can be paid in, with the digits of their minor units.
//!
//! Source: ISO 4217 List One of SIX Interbank Clearing, the maintenance agency
//! (<https://www.six-group.com/en/products-services/financial-information/data-standards.html>), as of 2026-01-01. Codes without
//! a minor unit (metals, units of account, `XTS`, `XXX`) are left out, because nothing is paid in them.

/// Codes by their digits, each list in the order of the alphabet.
const CURRENCIES_BY_DIGITS: [(u8, &str); 4] = [
    (
        0,
        "bif clp djf gnf isk jpy kmf krw pyg rwf ugx uyi vnd vuv xaf xof xpf",
    ),
    (
        2,
        "aed afn all amd aoa ars aud awg azn bam bbd bdt bmd bnd bob bov brl bsd btn bwp byn bzd cad cdf che chf chw cny cop cou crc cup cve czk \
         dkk dop dzd egp ern etb eur fjd fkp gbp gel ghs gip gmd gtq gyd hkd hnl htg huf idr ils inr irr jmd kes kgs khr kpw kyd kzt lak lbp \
         lkr lrd lsl mad mdl mga mkd mmk mnt mop mru mur mvr mwk mxn mxv myr mzn nad ngn nio nok npr nzd pab pen pgk php pkr pln qar ron rsd \
         rub sar sbd scr sdg sek sgd shp sle sos srd ssp stn svc syp szl thb tjs tmt top try ttd twd tzs uah usd usn uyu uzs ved ves wst xad \
         xcd xcg yer zar zmw zwg",
    ),
    (3, "bhd iqd jod kwd lyd omr tnd"),
    (4, "clf uyw"),
];

/// Returns the number of digits of a currency's minor unit, by its code in lower case; `None` for an unknown currency.
pub fn minor_unit_digits(currency: &str) -> Option<u8> {
    let lists = CURRENCIES_BY_DIGITS.iter();
    let mut found = lists.filter(|(_, codes)| codes.split(' ').any(|code| code == currency));
    found.next().map(|(digits, _)| *digits)
}

/// Formats an amount in minor units for people: `12.50 EUR`.
pub fn format_amount(amount: i64, currency: &str) -> String {
    let code = currency.to_ascii_uppercase();
    let digits = usize::from(minor_unit_digits(currency).unwrap_or(0));
    let text = format!("{amount:0>width$}", width = digits + 1);
    match text.split_at_checked(text.len() - digits) {
        Some((whole, part)) if digits > 0 => format!("{whole}.{part} {code}"),
        _ => format!("{text} {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn currencies_have_their_digits() {
        for (currency, expected) in [
            ("usd", Some(2)),
            ("eur", Some(2)),
            ("jpy", Some(0)),
            ("kwd", Some(3)),
            ("clf", Some(4)),
            ("USD", None),
            ("xxx", None),
            ("xau", None),
            ("us", None),
            ("usd eur", None),
            ("", None),
        ] {
            assert_eq!(minor_unit_digits(currency), expected, "{currency}");
        }
        for (_, codes) in CURRENCIES_BY_DIGITS {
            let codes: Vec<&str> = codes.split(' ').collect();
            assert!(codes.iter().all(|code| code.len() == 3), "{codes:?}");
            assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
        }
    }

    #[test]
    fn amounts_are_shown_with_their_digits() {
        for (amount, currency, expected) in [
            (1_250, "eur", "12.50 EUR"),
            (5, "usd", "0.05 USD"),
            (500, "jpy", "500 JPY"),
            (1_234, "kwd", "1.234 KWD"),
        ] {
            assert_eq!(format_amount(amount, currency), expected);
        }
    }
}
