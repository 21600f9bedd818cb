//! Random histories: the verdict is the same in every order, and a payment at another price grants nothing.

use proptest::prelude::*;

use super::*;

/// Generates an event about the session, or about another session's objects.
fn any_event() -> impl Strategy<Value = VerifiedEvent> {
    use CheckoutOutcome::{Expired, Failed, Paid, Pending};
    let outcome = prop::sample::select(vec![Paid, Pending, Failed, Expired]);
    let status = prop::sample::select(vec!["active", "past_due", "unpaid", "canceled", "trialing"]);
    let payment = prop::sample::select(vec!["pi", "pi_1", "pi_2", "pi_other"]);
    let amount = prop::sample::select(vec![500_i64, 500, 500, 499]);
    let email = prop::sample::select(vec!["ada@example.com", "bob@example.com"]);
    let totals = prop::sample::select(vec![
        None,
        Some(&[500][..]),
        Some(&[595, 500]),
        Some(&[499]),
    ]);
    let currency = prop::sample::select(vec![None, Some("eur"), Some("eur"), Some("usd")]);
    let checkout =
        (outcome, amount, email, any::<bool>()).prop_map(|(outcome, amount, email, once)| {
            let changed = |one: CheckoutFact| CheckoutFact {
                amount: Some(amount),
                email: Some(email.into()),
                ..one
            };
            match monthly(outcome) {
                EventFact::Checkout(one) if !once => EventFact::Checkout(changed(one)),
                _ => EventFact::Checkout(changed(checkout(outcome))),
            }
        });
    let fact = prop_oneof![
        3 => checkout,
        2 => (status, prop::bool::weighted(0.2)).prop_map(|(status, gone)| subscription(status, gone)),
        3 => (1_u32..4, prop::bool::weighted(0.7), totals, currency)
            .prop_map(|(number, paid, totals, currency)| invoice_of(number, paid, totals, currency)),
        2 => (1_u32..4).prop_map(invoice_payment),
        2 => (payment.clone(), any::<bool>()).prop_map(|(payment, all)| charge(payment, all)),
        1 => payment.clone().prop_map(failed_refund),
        1 => payment.prop_map(dispute),
    ];
    // Only a few times, so that some events have the same time.
    (0_i64..6, fact).prop_map(|(seconds, fact)| at(seconds, fact))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_order_of_six_says_the_same(mut events in prop::collection::vec(any_event(), 0..=6)) {
        let expected = verdict(&terms(), &events);
        permute(&mut events, 0, &mut |events| {
            assert_eq!(verdict(&terms(), events), expected);
        });
    }

    #[test]
    fn what_is_not_at_the_price_grants_nothing_whatever_has_come(
        events in prop::collection::vec(any_event(), 0..=12),
        seconds in 0_i64..6,
        number in 1_u32..5,
        totals in prop::sample::select(vec![Some(&[499][..]), Some(&[]), Some(&[0])]),
        once in any::<bool>(),
    ) {
        let before = verdict(&terms(), &events);
        let paid = if once { EventFact::Checkout(checkout(CheckoutOutcome::Paid)) } else { monthly(CheckoutOutcome::Paid) };
        let EventFact::Checkout(paid) = paid else { unreachable!() };
        for fact in [
            invoice_of(number, true, totals, Some("eur")),
            invoice_of(number, true, Some(&[500]), Some("usd")),
            EventFact::Checkout(CheckoutFact { amount: Some(499), ..paid.clone() }),
            EventFact::Checkout(CheckoutFact { currency: Some("usd".into()), ..paid }),
        ] {
            let mut events = events.clone();
            events.push(at(seconds, fact));
            let after = verdict(&terms(), &events);
            prop_assert!(after.status != Status::Paid || before.status == Status::Paid, "{events:#?}");
        }
        let mut disputed = events;
        disputed.push(at(seconds, dispute("pi")));
        prop_assert_eq!(verdict(&terms(), &disputed), before);
    }

    #[test]
    fn any_order_of_thirty_says_the_same_and_so_does_a_repetition(
        events in prop::collection::vec(any_event(), 20..=30),
        seeds in prop::collection::vec(any::<prop::sample::Index>(), 30),
        again in prop::collection::vec(any::<prop::sample::Index>(), 5),
    ) {
        let expected = verdict(&terms(), &events);
        let mut shuffled = events.clone();
        for (place, seed) in seeds.iter().enumerate().take(events.len()) {
            let other = seed.index(shuffled.len());
            shuffled.swap(place, other);
        }
        prop_assert_eq!(verdict(&terms(), &shuffled), expected.clone());
        shuffled.extend(again.iter().map(|index| index.get(&events).clone()));
        prop_assert_eq!(verdict(&terms(), &shuffled), expected);
    }
}
