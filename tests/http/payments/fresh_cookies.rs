//! Fresh cookies of visitors who are signed in: what such a visitor has bought before stays found, whatever becomes of a checkout.

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use svc::payments::model::MAX_BUYER_SESSIONS;
use svc_tests::browser::{Browser, StoredCookie};
use svc_tests::{Answer, TestServer};

use super::copy_sessions;
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
        let price = add_price(&guest_book.fixture, "PDF").await;
        Self {
            price,
            guest_book,
            provider,
        }
    }

    fn server(&self) -> &TestServer {
        &self.guest_book.fixture.server
    }

    /// Clicks on the button of the page.
    async fn click(&self, browser: &mut Browser) -> Answer {
        self.click_on(browser, &self.price).await
    }

    /// Clicks on the button of a price.
    async fn click_on(&self, browser: &mut Browser, price: &str) -> Answer {
        let headers = [
            ("origin", self.guest_book.origin.as_str()),
            ("accept", "application/json"),
        ];
        let headers = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()));
        let headers = HeaderMap::from_iter(headers);
        let body = json!({ "price": price }).to_string();
        let url = self.guest_book.url("/payments/checkout");
        browser
            .send_request(Method::POST, &url, headers, Some(body))
            .await
    }

    /// Buys the price of the page.
    async fn buy(&self, browser: &mut Browser) {
        self.buy_price(browser, &self.price).await;
    }

    /// Buys a price.
    async fn buy_price(&self, browser: &mut Browser, price: &str) {
        let id = self.begin_checkout(browser, price).await;
        let paid = checkout(&id, "paid");
        self.send(&event(
            &format!("evt_{id}"),
            "checkout.session.completed",
            1,
            &paid,
        ))
        .await;
    }

    /// Begins the checkout of a price; returns the provider's id.
    async fn begin_checkout(&self, browser: &mut Browser, price: &str) -> String {
        let begun = self.click_on(browser, price).await.expect(200).json();
        text(&begun["url"]).rsplit('/').next().unwrap().to_owned()
    }

    /// Sends an event of the provider.
    async fn send(&self, event: &Value) {
        let now = self.server().server().app().clock.now();
        let told =
            fake_stripe::send_webhook(self.server(), event.to_string(), fake_stripe::SECRET, now);
        told.await.expect(200);
    }

    async fn sign_in(&self, browser: &mut Browser) {
        let form = "name=Bob&email=bob%40example.com";
        self.guest_book.sign_in(browser, form, "").await;
    }

    /// Number of links between cookies.
    async fn count_links(&self) -> i64 {
        let app = self.server().server().app();
        let count = app.control.read(|c| {
            let sql = "SELECT count(*) FROM payment_cookie_links";
            c.query_row(sql, [], |row| row.get(0))
        });
        count.await.unwrap()
    }

    /// Signs of the payments that a browser is shown, newest first.
    async fn owned_purchases(&self, browser: &mut Browser) -> Vec<String> {
        let status = browser.get(&self.guest_book.url("/payments/status")).await;
        let status = status.expect(200).json();
        let payments = status["payments"].as_array().unwrap().iter();
        payments.map(|one| text(&one["matched_by"])).collect()
    }
}

/// Adds a price of a project; returns its id.
async fn add_price(fixture: &ProjectFixture, label: &str) -> String {
    let price =
        json!({ "product_name": "Handbook", "label": label, "amount": 900, "currency": "eur" });
    let path = format!("/{}/payments/catalog", fixture.project);
    let made = fixture.owner.post(&fixture.server, &path, &price).await;
    text(&made.expect(201).json()["id"])
}

/// A browser with the checkout cookies of another one, and nothing else of it.
fn without_sign_in(browser: &Browser) -> Browser {
    let mut anonymous = browser.clone();
    anonymous
        .cookies
        .retain(|one| one.name.starts_with("svc_checkout_"));
    anonymous
}

/// Has another site of the domain add a checkout cookie.
fn toss_cookie(browser: &mut Browser) -> StoredCookie {
    let mut all = browser.cookies.iter();
    let own = all.rfind(|one| one.name.starts_with("svc_checkout_"));
    let tossed = StoredCookie {
        path: "/".to_owned(),
        value: "x".repeat(43),
        ..own.expect("a checkout cookie").clone()
    };
    browser.cookies.push(tossed.clone());
    tossed
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
    browser.cookies = before;
    let mut former = without_sign_in(&browser);
    assert_eq!(shop.owned_purchases(&mut former).await, [""; 0]);
}

#[tokio::test]
async fn an_answer_that_never_arrives_leaves_earlier_purchases_with_the_cookie_that_the_browser_has()
 {
    let shop = PaymentsFixture::start().await;
    let mut browser = shop.guest_book.browser();
    shop.buy(&mut browser).await;
    shop.sign_in(&mut browser).await;
    let mut former = without_sign_in(&browser);
    // The cookie of the answer is lost with this copy.
    shop.buy(&mut browser.clone()).await;
    assert_eq!(
        shop.owned_purchases(&mut former).await,
        ["cookie"],
        "the earlier one alone: somebody else may have set the cookie"
    );
    // The next answer has all of them, from its first use.
    shop.click(&mut browser).await.expect(200);
    assert_eq!(shop.owned_purchases(&mut former).await, ["cookie"]);
    let mut fresh = without_sign_in(&browser);
    assert_eq!(shop.owned_purchases(&mut fresh).await, ["cookie"; 2]);
    assert_eq!(shop.owned_purchases(&mut former).await, [""; 0]);
}

#[tokio::test]
async fn two_checkouts_at_once_leave_all_purchases_with_the_cookie_of_the_last_answer() {
    for asks_in_between in [false, true] {
        let shop = PaymentsFixture::start().await;
        let print = add_price(&shop.guest_book.fixture, "Print").await;
        let mut browser = shop.guest_book.browser();
        shop.buy(&mut browser).await;
        shop.sign_in(&mut browser).await;
        let (mut first, mut last) = (browser.clone(), browser.clone());
        tokio::join!(shop.buy(&mut first), shop.buy_price(&mut last, &print));
        if asks_in_between {
            let mut first = without_sign_in(&first);
            assert_eq!(shop.owned_purchases(&mut first).await, ["cookie"; 3]);
        }
        let mut last = without_sign_in(&last);
        assert_eq!(
            shop.owned_purchases(&mut last).await,
            ["cookie"; 3],
            "{asks_in_between}"
        );
    }
}

#[tokio::test]
async fn a_cookie_that_another_site_has_added_replaces_none() {
    let shop = PaymentsFixture::start().await;
    let mut browser = shop.guest_book.browser();
    shop.buy(&mut browser).await;
    let (own, calls) = (browser.clone(), shop.provider.calls().len());
    toss_cookie(&mut browser);
    let refused = shop.click(&mut browser).await;
    let problem = refused.problem(400, "invalid_request").to_string();
    assert!(problem.contains("Sign in first"), "{problem}");
    assert_eq!(refused.header("set-cookie"), None);
    assert_eq!(shop.provider.calls().len(), calls, "nobody was asked");
    assert_eq!(shop.owned_purchases(&mut own.clone()).await, ["cookie"]);

    // Who is signed in is recognised without a cookie.
    let mut browser = own;
    shop.sign_in(&mut browser).await;
    let tossed = toss_cookie(&mut browser);
    let before = browser.cookies.clone();
    shop.buy(&mut browser).await;
    assert_eq!(browser.cookies, before);
    assert_eq!(shop.owned_purchases(&mut browser).await, ["user_id"]);
    browser.cookies.retain(|one| *one != tossed);
    let mut owned = shop.owned_purchases(&mut browser).await;
    owned.sort();
    assert_eq!(owned, ["cookie", "user_id"]);
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

#[tokio::test]
async fn a_late_answer_without_a_sign_in_leaves_the_fresh_cookie() {
    let shop = PaymentsFixture::start().await;
    let print = add_price(&shop.guest_book.fixture, "Print").await;
    let mut browser = shop.guest_book.browser();
    shop.buy(&mut browser).await;
    let mut late = browser.clone();
    let delayed = shop.provider.delay_next_answer();
    let meanwhile = async {
        shop.provider.wait_for_call(&delayed).await;
        shop.sign_in(&mut browser).await;
        shop.click(&mut browser).await.expect(200);
        assert_eq!(shop.owned_purchases(&mut browser).await, ["cookie"]);
        delayed.send();
    };
    let (answer, ()) = tokio::join!(shop.click_on(&mut late, &print), meanwhile);
    assert_eq!(answer.expect(200).header("set-cookie"), None);
    assert_eq!(shop.owned_purchases(&mut browser).await, ["cookie"]);
}

#[tokio::test]
async fn a_signed_in_visitor_begins_a_bounded_number_of_checkouts_a_day_in_all_browsers() {
    let shop = PaymentsFixture::start().await;
    let print = add_price(&shop.guest_book.fixture, "Print").await;
    let mut here = shop.guest_book.browser();
    shop.sign_in(&mut here).await;
    let first = shop.click(&mut here).await.expect(200).json();
    copy_sessions(shop.server(), MAX_BUYER_SESSIONS - 1).await;
    let mut elsewhere = shop.guest_book.browser();
    shop.sign_in(&mut elsewhere).await;
    for browser in [&mut here, &mut elsewhere] {
        let refused = shop.click_on(browser, &print).await;
        refused.problem(429, "rate_limited");
        let again = shop.click(browser).await.expect(200).json();
        assert_eq!(again, first, "a second click begins nothing");
    }
    assert_eq!(shop.provider.calls().len(), 1, "nobody was asked");
}

#[tokio::test]
async fn what_nobody_will_pay_any_more_stays_with_the_former_cookie() {
    let shop = PaymentsFixture::start().await;
    let fixture = &shop.guest_book.fixture;
    let print = add_price(fixture, "Print").await;
    let poster = add_price(fixture, "Poster").await;
    let mut browser = shop.guest_book.browser();
    shop.buy(&mut browser).await;
    let expired = shop.begin_checkout(&mut browser, &print).await;
    let object = checkout(&expired, "unpaid");
    shop.send(&event("evt_x", "checkout.session.expired", 2, &object))
        .await;
    // A bank transfer takes its time.
    let pending = shop.begin_checkout(&mut browser, &poster).await;
    shop.server().advance(10 * 24 * 3600);
    shop.sign_in(&mut browser).await;
    shop.click(&mut browser).await.expect(200);
    assert_eq!(shop.owned_purchases(&mut browser).await, ["cookie"]);
    let app = shop.server().server().app();
    let moved = app.control.read(|c| {
        let sql = "SELECT status FROM payment_sessions
            WHERE cookie_sha256 = (SELECT cookie_sha256 FROM payment_sessions ORDER BY number DESC LIMIT 1) ORDER BY number";
        c.prepare(sql)?
            .query_map([], |row| row.get::<_, String>(0))?
            .collect()
    });
    let moved: Vec<String> = moved.await.unwrap();
    assert_eq!(moved, ["paid", "open", "open"]);
    let object = checkout(&pending, "paid");
    let kind = "checkout.session.async_payment_succeeded";
    shop.send(&event("evt_y", kind, 3, &object)).await;
    assert_eq!(shop.owned_purchases(&mut browser).await, ["cookie"; 2]);
}

#[tokio::test]
async fn repeated_clicks_leave_a_bounded_number_of_links() {
    let shop = PaymentsFixture::start().await;
    let mut browser = shop.guest_book.browser();
    shop.sign_in(&mut browser).await;
    let signed_in = browser.clone();
    for _ in 0..18 {
        shop.click(&mut signed_in.clone()).await.expect(200);
    }
    assert_eq!(shop.count_links().await, 16);
}

#[tokio::test]
async fn a_click_that_gives_no_cookie_leaves_no_link() {
    let shop = PaymentsFixture::start().await;
    let mut browser = shop.guest_book.browser();
    shop.sign_in(&mut browser).await;
    shop.click(&mut browser).await.expect(200);
    toss_cookie(&mut browser);
    let again = shop.click(&mut browser).await.expect(200);
    assert_eq!(again.header("set-cookie"), None);
    assert_eq!(shop.count_links().await, 0);
}
