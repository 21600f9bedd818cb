//! Recognition of payers: by their sign-in, by their verified address, and by their browser, in this order.

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use svc_tests::TestServer;
use svc_tests::browser::Browser;

use super::{PaymentsFixture, fake_stripe};
use crate::owner::text;
use crate::visitors::GuestBook;

/// The page's own calls, and none of another's.
fn origin_header(origin: &str) -> HeaderMap {
    HeaderMap::from_iter([("origin".parse().unwrap(), origin.parse().unwrap())])
}

/// A price of the fixture's project.
async fn create_price(guest_book: &GuestBook) -> String {
    let fixture = &guest_book.fixture;
    let price =
        json!({ "product_name": "Handbook", "label": "PDF", "amount": 900, "currency": "eur" });
    let path = format!("/{}/payments/catalog", fixture.project);
    let price = fixture.owner.post(&fixture.server, &path, &price).await;
    text(&price.expect(201).json()["id"])
}

/// Begins a checkout at the provider of the server itself.
async fn begin_checkout(guest_book: &GuestBook, browser: &mut Browser, price: &str) -> Value {
    let mut headers = origin_header(&guest_book.origin);
    headers.insert("accept", "application/json".parse().unwrap());
    let body = json!({ "price": price }).to_string();
    let url = guest_book.url("/payments/checkout");
    let begun = browser
        .send_request(Method::POST, &url, headers, Some(body))
        .await;
    begun.expect(200).json()
}

/// Buys a price, and pays with an address.
async fn complete_purchase(
    guest_book: &GuestBook,
    browser: &mut Browser,
    price: &str,
    email: &str,
) -> String {
    let begun = begin_checkout(guest_book, browser, price).await;
    let (at, page) = browser.open(&text(&begun["url"])).await;
    page.expect(200);
    let form = format!("outcome=pay&email={}", email.replace('@', "%40"));
    let back = browser.submit(&at, &form).await.expect(303);
    assert_eq!(
        back.header("location"),
        Some(&*guest_book.url("?checkout=success"))
    );
    text(&begun["session_id"])
}

async fn owned_purchases(guest_book: &GuestBook, browser: &mut Browser) -> Vec<(Value, Value)> {
    let status = browser
        .get(&guest_book.url("/payments/status"))
        .await
        .expect(200);
    assert_eq!(status.header("cache-control"), Some("private, no-store"));
    assert_eq!(status.header("access-control-allow-origin"), None);
    let payments = status.json()["payments"].as_array().unwrap().clone();
    payments
        .into_iter()
        .map(|one| (one["email"].clone(), one["matched_by"].clone()))
        .collect()
}

#[tokio::test]
async fn a_visitor_is_known_by_the_surest_sign() {
    let guest_book = GuestBook::with_dev_provider().await;
    let fixture = &guest_book.fixture;
    let price = create_price(&guest_book).await;
    let ada = "name=Ada&email=ada%40example.com";
    let bob = "name=Bob&email=bob%40example.com";

    // Signed in: bought with another address, and known everywhere by who they are.
    let mut first = guest_book.browser();
    guest_book.sign_in(&mut first, ada, "").await;
    let id = guest_book.user(&mut first).await["id"].clone();
    let session = complete_purchase(&guest_book, &mut first, &price, "somewhere@example.com").await;
    let by_id = [(json!("somewhere@example.com"), json!("user_id"))];
    assert_eq!(owned_purchases(&guest_book, &mut first).await, by_id);
    let path = format!("/{}/payments/sessions", fixture.project);
    let sessions = fixture
        .owner
        .get(&fixture.server, &path)
        .await
        .expect(200)
        .json();
    assert_eq!(sessions["sessions"][0]["id"], json!(session));
    assert_eq!(sessions["sessions"][0]["user_id"], id);
    let mut elsewhere = guest_book.browser();
    assert_eq!(owned_purchases(&guest_book, &mut elsewhere).await, []);
    guest_book.sign_in(&mut elsewhere, ada, "").await;
    assert_eq!(owned_purchases(&guest_book, &mut elsewhere).await, by_id);

    // Signed out again, the browser is still the one that bought, and says no more who did.
    let logout = guest_book.url("/auth/logout");
    let out = first
        .send_request(
            Method::POST,
            &logout,
            origin_header(&guest_book.origin),
            None,
        )
        .await;
    out.expect(204);
    let by_cookie = [(Value::Null, json!("cookie"))];
    assert_eq!(owned_purchases(&guest_book, &mut first).await, by_cookie);
    let status = first.get(&guest_book.url("/payments/status")).await;
    assert_eq!(status.json()["payments"][0].get("user_id"), None);
    let out = elsewhere
        .send_request(
            Method::POST,
            &logout,
            origin_header(&guest_book.origin),
            None,
        )
        .await;
    out.expect(204);
    assert_eq!(owned_purchases(&guest_book, &mut elsewhere).await, []);

    // Bought by nobody with Bob's address, written as people do: Bob has it, once he has signed in; Ada has not.
    let mut nobody = guest_book.browser();
    complete_purchase(&guest_book, &mut nobody, &price, "BOB@Example.com").await;
    let mut his = guest_book.browser();
    guest_book.sign_in(&mut his, bob, "").await;
    let by_email = [(json!("BOB@Example.com"), json!("email"))];
    assert_eq!(owned_purchases(&guest_book, &mut his).await, by_email);
    guest_book.sign_in(&mut elsewhere, ada, "").await;
    assert_eq!(owned_purchases(&guest_book, &mut elsewhere).await, by_id);

    // A page of another origin is told nothing of who is signed in.
    let stranger = origin_header("https://evil.example");
    let status = guest_book.url("/payments/status");
    let told = his
        .send_request(Method::GET, &status, stranger, None)
        .await
        .expect(200);
    assert_eq!(told.json(), json!({ "payments": [] }));
}

#[tokio::test]
async fn a_click_of_somebody_else_in_the_same_browser_is_another_purchase() {
    let guest_book = GuestBook::with_dev_provider().await;
    let price = create_price(&guest_book).await;
    let mut browser = guest_book.browser();
    let mut begun = Vec::new();
    for who in [None, Some("ada"), Some("bob")] {
        if let Some(who) = who {
            let form = format!("name={who}&email={who}%40example.com");
            guest_book.sign_in(&mut browser, &form, "").await;
        }
        let first = begin_checkout(&guest_book, &mut browser, &price).await;
        let again = begin_checkout(&guest_book, &mut browser, &price).await;
        assert_eq!(first, again, "{who:?}: a double click");
        begun.push(text(&first["session_id"]));
    }
    begun.sort();
    begun.dedup();
    assert_eq!(begun.len(), 3);
}

/// The checkout cookie of a browser, as it is sent.
fn checkout_cookie(browser: &Browser) -> String {
    let mut found = browser.cookies.iter();
    let found = found.rfind(|one| one.name.starts_with("svc_checkout_"));
    let found = found.expect("a checkout cookie");
    format!("{}={}", found.name, found.value)
}

#[tokio::test]
async fn what_a_signed_in_visitor_buys_is_not_seen_by_the_cookie_of_another() {
    let guest_book = GuestBook::with_dev_provider().await;
    let price = create_price(&guest_book).await;
    let mut attacker = guest_book.browser();
    begin_checkout(&guest_book, &mut attacker, &price).await;
    let planted = checkout_cookie(&attacker);

    // A sibling has set its own cookie in the browser of the victim.
    let mut victim = guest_book.browser();
    let mut cookie = attacker.cookies.last().unwrap().clone();
    cookie.line = String::new();
    victim.cookies.push(cookie);
    guest_book
        .sign_in(&mut victim, "name=Eve&email=eve%40example.com", "")
        .await;
    complete_purchase(&guest_book, &mut victim, &price, "somewhere@example.com").await;
    assert_ne!(checkout_cookie(&victim), planted);
    assert_eq!(owned_purchases(&guest_book, &mut attacker).await, []);
    let by_id = [(json!("somewhere@example.com"), json!("user_id"))];
    assert_eq!(owned_purchases(&guest_book, &mut victim).await, by_id);

    // Each checkout has a fresh one, a second click on the same button too, and all of them are found by the last.
    guest_book.fixture.server.advance(1);
    let before = checkout_cookie(&victim);
    let first = begin_checkout(&guest_book, &mut victim, &price).await;
    let between = checkout_cookie(&victim);
    let again = begin_checkout(&guest_book, &mut victim, &price).await;
    assert_eq!(first, again);
    let after = checkout_cookie(&victim);
    assert!(before != between && between != after && before != after);
    let (at, _) = victim.open(&text(&again["url"])).await;
    let paid = victim.submit(&at, "outcome=pay&email=second%40example.com");
    paid.await.expect(303);
    let logout = guest_book.url("/auth/logout");
    let out = victim.send_request(
        Method::POST,
        &logout,
        origin_header(&guest_book.origin),
        None,
    );
    out.await.expect(204);
    let by_cookie = || (Value::Null, json!("cookie"));
    assert_eq!(
        owned_purchases(&guest_book, &mut victim).await,
        [by_cookie(), by_cookie()]
    );
}

#[tokio::test]
async fn what_was_bought_before_signing_in_moves_to_the_fresh_cookie() {
    let guest_book = GuestBook::with_dev_provider().await;
    let price = create_price(&guest_book).await;
    let mut browser = guest_book.browser();
    complete_purchase(&guest_book, &mut browser, &price, "first@example.com").await;
    let former = checkout_cookie(&browser);
    guest_book.fixture.server.advance(1);
    guest_book
        .sign_in(&mut browser, "name=Ada&email=ada%40example.com", "")
        .await;
    complete_purchase(&guest_book, &mut browser, &price, "second@example.com").await;
    let all = [
        (json!("second@example.com"), json!("user_id")),
        (json!("first@example.com"), json!("cookie")),
    ];
    assert_eq!(owned_purchases(&guest_book, &mut browser).await, all);
    let mut elsewhere = guest_book.browser();
    let headers = HeaderMap::from_iter([("cookie".parse().unwrap(), former.parse().unwrap())]);
    let status = guest_book.url("/payments/status");
    let told = elsewhere
        .send_request(Method::GET, &status, headers, None)
        .await;
    assert_eq!(told.expect(200).json(), json!({ "payments": [] }));
}

#[tokio::test]
async fn an_address_is_the_same_in_the_cases_of_ascii_alone() {
    let guest_book = GuestBook::with_dev_provider().await;
    let price = create_price(&guest_book).await;
    let mut payer = guest_book.browser();
    // The first letter is the Kelvin sign, whose lower case is `k`.
    complete_purchase(&guest_book, &mut payer, &price, "%E2%84%AAate@example.com").await;
    let mut kate = guest_book.browser();
    guest_book
        .sign_in(&mut kate, "name=Kate&email=kate%40example.com", "")
        .await;
    assert_eq!(owned_purchases(&guest_book, &mut kate).await, []);
    complete_purchase(&guest_book, &mut payer, &price, "KATE@EXAMPLE.com").await;
    let by_email = [(json!("KATE@EXAMPLE.com"), json!("email"))];
    assert_eq!(owned_purchases(&guest_book, &mut kate).await, by_email);
}

#[tokio::test]
async fn what_was_bought_before_cookies_were_the_hosts_own_is_shown_by_the_former_one() {
    let builder = TestServer::builder()
        .settings(|settings| settings.base_url = Some("https://svc.test".parse().unwrap()));
    let shop = PaymentsFixture::with_builder(builder).await;
    let price = shop.add_price(json!({})).await;
    let bought = async |cookie: &str| {
        let headers = [
            ("host", "svc.test"),
            ("accept", "application/json"),
            ("cookie", cookie),
        ];
        let body = json!({ "price": price });
        let mut request = shop.server.json("/shop/payments/checkout", &body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let begun = svc_tests::ReadAnswer::answer(request).await.expect(200);
        let line = begun.header("set-cookie").unwrap().to_owned();
        let checkout = text(&begun.json()["url"])
            .rsplit('/')
            .next()
            .unwrap()
            .to_owned();
        let paid = fake_stripe::checkout(&checkout, "paid");
        let id = format!("evt_{checkout}");
        shop.send_accepted_event(&fake_stripe::event(
            &id,
            "checkout.session.completed",
            10,
            &paid,
        ))
        .await;
        line
    };
    let owned_purchases = async |cookie: &str| {
        let status = shop.server.get("/shop/payments/status");
        let status = status.header("host", "svc.test").header("cookie", cookie);
        let status = svc_tests::ReadAnswer::answer(status)
            .await
            .expect(200)
            .json();
        status["payments"].as_array().unwrap().len()
    };
    let line = bought("").await;
    for attribute in ["Secure", "HttpOnly", "Path=/", "SameSite=Lax"] {
        assert!(line.split("; ").any(|one| one == attribute), "{line}");
    }
    let own = line.split(';').next().unwrap();
    let former = own.strip_prefix("__Host-").expect("the prefix");
    assert_eq!(
        (owned_purchases(own).await, owned_purchases(former).await),
        (1, 0)
    );

    // As for an earlier purchase.
    let app = shop.server.server().app();
    let before = app.control.write(|tx| {
        tx.execute("UPDATE payment_sessions SET host_cookie = 0", [])?;
        Ok::<_, svc::control::Error>(())
    });
    before.await.unwrap();
    assert_eq!(
        (owned_purchases(own).await, owned_purchases(former).await),
        (0, 1)
    );
    // A sibling that adds one of that name hides nothing.
    let name = former.split('=').next().unwrap();
    let tossed = format!("{former}; {name}={}", "x".repeat(43));
    assert_eq!(owned_purchases(&tossed).await, 1);
    // A sibling may have set it, so that nothing new is seen by it.
    let fresh = bought(former).await;
    let fresh = fresh.split(';').next().unwrap();
    assert_ne!(fresh, own);
    assert_eq!(
        (owned_purchases(fresh).await, owned_purchases(former).await),
        (1, 1)
    );
    assert_eq!(owned_purchases(&format!("{fresh}; {former}")).await, 2);
    assert_eq!(owned_purchases(&format!("{fresh}; {fresh}")).await, 0);
}
