//! Fresh cookies of visitors who are signed in: what such a visitor has bought before stays found, whatever becomes of a checkout.

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use svc_tests::browser::Browser;
use svc_tests::{Answer, TestServer};

use super::fake_stripe::{self, FakeAnswer, FakeStripe, checkout, event};
use crate::owner::text;
use crate::project_fixture::ProjectFixture;
use crate::visitors::GuestBook;

/// A page that sells and has accounts, at a provider that records what it is asked.
struct PaymentsFixture {
    guest_book: GuestBook,
    provider: FakeStripe,
    price: String,
}

impl PaymentsFixture {
    async fn start() -> Self {
        let provider = FakeStripe::start().await;
        let stripe = provider.settings();
        let guest_book = GuestBook::with_settings(|settings| {
            settings.dev = true;
            settings.stripe = Some(stripe);
        });
        let guest_book = guest_book.await;
        let ProjectFixture {
            server,
            owner,
            project,
        } = &guest_book.fixture;
        let price =
            json!({ "product_name": "Handbook", "label": "PDF", "amount": 900, "currency": "eur" });
        let path = format!("/{project}/payments/catalog");
        let made = owner.post(server, &path, &price).await.expect(201).json();
        Self {
            price: text(&made["id"]),
            guest_book,
            provider,
        }
    }

    fn server(&self) -> &TestServer {
        &self.guest_book.fixture.server
    }

    /// Clicks on the button of the page.
    async fn click(&self, browser: &mut Browser) -> Answer {
        let headers = [
            ("origin", self.guest_book.origin.as_str()),
            ("accept", "application/json"),
        ];
        let headers = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()));
        let headers = HeaderMap::from_iter(headers);
        let body = json!({ "price": self.price }).to_string();
        let url = self.guest_book.url("/payments/checkout");
        browser
            .send_request(Method::POST, &url, headers, Some(body))
            .await
    }

    /// Buys the price without a sign-in; returns the session.
    async fn buy(&self, browser: &mut Browser) -> Value {
        let begun = self.click(browser).await.expect(200).json();
        let id = text(&begun["url"]).rsplit('/').next().unwrap().to_owned();
        let paid = checkout(&id, "paid");
        let paid = event(&format!("evt_{id}"), "checkout.session.completed", 1, &paid);
        let now = self.server().server().app().clock.now();
        let told =
            fake_stripe::send_webhook(self.server(), paid.to_string(), fake_stripe::SECRET, now);
        told.await.expect(200);
        begun["session_id"].clone()
    }

    async fn sign_in(&self, browser: &mut Browser) {
        let form = "name=Bob&email=bob%40example.com";
        self.guest_book.sign_in(browser, form, "").await;
    }

    /// Signs of the payments that a browser is shown, newest first.
    async fn owned_purchases(&self, browser: &mut Browser) -> Vec<String> {
        let status = browser.get(&self.guest_book.url("/payments/status")).await;
        let status = status.expect(200).json();
        let payments = status["payments"].as_array().unwrap().iter();
        payments.map(|one| text(&one["matched_by"])).collect()
    }
}

#[tokio::test]
async fn a_checkout_that_fails_leaves_earlier_purchases_with_the_cookie_that_the_browser_has() {
    let shop = PaymentsFixture::start().await;
    let mut browser = shop.guest_book.browser();
    shop.buy(&mut browser).await;
    shop.sign_in(&mut browser).await;
    for status in [401, 500] {
        shop.provider
            .set_next_answer(FakeAnswer::Respond(status, Value::Null));
        let failed = shop.click(&mut browser).await;
        failed.problem(503, "provider_unavailable");
        assert_eq!(
            shop.owned_purchases(&mut browser).await,
            ["cookie"],
            "{status}"
        );
    }
    // The click that gets through takes them along.
    let before = browser.cookies.clone();
    shop.click(&mut browser).await.expect(200);
    assert_ne!(browser.cookies, before, "a fresh cookie");
    assert_eq!(shop.owned_purchases(&mut browser).await, ["cookie"]);
    let mut former = shop.guest_book.browser();
    former.cookies = before;
    former
        .cookies
        .retain(|one| one.name.starts_with("svc_checkout_"));
    assert_eq!(shop.owned_purchases(&mut former).await, [""; 0]);
}

#[tokio::test]
async fn a_double_click_leaves_earlier_purchases_with_the_cookie_of_the_last_answer() {
    let shop = PaymentsFixture::start().await;
    let mut browser = shop.guest_book.browser();
    shop.buy(&mut browser).await;
    shop.sign_in(&mut browser).await;
    // A browser drops the answers to all clicks but the last.
    let (mut first, mut second) = (browser.clone(), browser.clone());
    let (one, other) = tokio::join!(shop.click(&mut first), shop.click(&mut second));
    let third = shop.click(&mut browser).await.expect(200).json();
    assert_eq!(one.expect(200).json(), third);
    assert_eq!(other.expect(200).json(), third);
    assert_eq!(shop.owned_purchases(&mut browser).await, ["cookie"]);
}

#[tokio::test]
async fn a_click_of_the_same_visitor_elsewhere_takes_nothing_but_the_session_along() {
    let shop = PaymentsFixture::start().await;
    let mut here = shop.guest_book.browser();
    shop.buy(&mut here).await;
    let mut elsewhere = shop.guest_book.browser();
    shop.buy(&mut elsewhere).await;
    shop.sign_in(&mut here).await;
    shop.sign_in(&mut elsewhere).await;
    let first = shop.click(&mut here).await.expect(200).json();
    let second = shop.click(&mut elsewhere).await.expect(200).json();
    assert_eq!(first, second, "one purchase");
    for browser in [&mut here, &mut elsewhere] {
        assert_eq!(shop.owned_purchases(browser).await, ["cookie"]);
    }
}
