//! Which names can be domains, who may add them, and how many.

use http::Method;
use serde_json::json;
use svc::workspaces::Plan;
use svc_tests::TestServer;

use super::{DomainFixture, NAME};
use crate::owner::Owner;

#[tokio::test]
async fn a_domain_is_added_listed_and_removed() {
    let fixture = DomainFixture::new().await;
    let added = fixture.add("WWW.Shop.com.").await.expect(201).json();
    assert_eq!(added["name"], NAME);
    assert_eq!(added["state"], "pending");
    assert_eq!(added["redirect_to"], json!(null));
    assert_eq!(added["verified_at"], json!(null));
    assert_eq!(added["checked_at"], json!(null));
    let none = json!({ "state": "none", "not_after": null, "detail": null });
    assert_eq!(added["certificate"], none);
    let records = added["records"].as_array().unwrap();
    assert_eq!(records[0]["type"], "CNAME");
    assert_eq!(records[0]["name"], NAME);
    let target = records[0]["value"].as_str().unwrap();
    let characters = target.strip_prefix("d-").unwrap();
    let characters = characters.strip_suffix(".localhost").unwrap();
    assert_eq!(characters.len(), 26);
    let proof = json!({ "type": "TXT", "name": format!("_svc.{NAME}"), "value": format!("svc-domain={characters}") });
    assert_eq!(records[1], proof);
    // Once more, it is the same one.
    assert_eq!(fixture.add(NAME).await.expect(201).json(), added);
    let path = format!("/{}/domains", fixture.project);
    let listed = fixture.owner.get(&fixture.server, &path).await;
    assert_eq!(listed.expect(200).json(), json!({ "domains": [added] }));
    assert_eq!(fixture.get("www.SHOP.com").await.expect(200).json(), added);
    let apex = fixture.add("shop.com").await.expect(201).json();
    let records = apex["records"].as_array().unwrap();
    assert_eq!(records.len(), 1, "DNS allows no CNAME there: {records:?}");
    assert_eq!(records[0]["type"], "TXT");
    for _ in 0..2 {
        fixture.delete(NAME).await.expect(204);
    }
    fixture.get(NAME).await.problem(404, "not_found");
    fixture.verify(NAME).await.problem(404, "not_found");
    fixture.delete("not a name").await.expect(204);
    // The characters belong to the project and the name for ever.
    let again = fixture.add(NAME).await.expect(201).json();
    assert_eq!(again["records"], added["records"]);
    let other = fixture.owner.project(&fixture.server, "Other").await;
    let others = fixture.add_to(&other, &json!({ "name": NAME })).await;
    assert_ne!(others.expect(201).json()["records"], added["records"]);
}

#[tokio::test]
async fn names_that_can_be_no_domain_are_refused() {
    let fixture = DomainFixture::with_settings(|settings| {
        settings.base_url = Some("http://api.svc-host.com".parse().unwrap());
        settings.sites_url = Some("http://sites.svc-host.com".parse().unwrap());
        settings.sites_domain = Some("pages.svc-host.net".to_owned());
        settings.landing_host = Some("svc-landing.com".to_owned());
        settings.console_url = Some("https://console.svc-console.com".to_owned());
    });
    let fixture = fixture.await;
    let long = format!("{}.com", "a.".repeat(150));
    for name in [
        "",
        "shop",
        "com",
        "co.uk",
        "github.io",
        "127.0.0.1",
        "[::1]",
        "::1",
        "127.1",
        "0x7f.1",
        "*.shop.com",
        "a b.com",
        "a_b.shop.com",
        "https://shop.com",
        "shop.com/",
        "shop.com:80",
        "shop..com",
        "-a.shop.com",
        "localhost",
        "shop.localhost",
        "shop.test",
        "shop.invalid",
        "shop.example",
        "shop.local",
        "shop.onion",
        "1.0.0.127.in-addr.arpa",
        &long,
        "api.svc-host.com",
        "svc-host.com",
        "x.sites.svc-host.com",
        "pages.svc-host.net",
        "a.pages.svc-host.net",
        "svc-host.net",
        "svc-landing.com",
        "www.svc-landing.com",
        "console.svc-console.com",
        "svc-console.com",
    ] {
        let problem = fixture.add(name).await.problem(400, "invalid_request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("`name`"), "{name}: {detail}");
    }
    for body in [
        json!({}),
        json!({ "name": 1 }),
        json!({ "name": NAME, "more": 1 }),
    ] {
        let refused = fixture.add_to(&fixture.project, &body).await;
        refused.problem(400, "invalid_request");
    }
    let idn = fixture.add("bücher.shop.com").await.expect(201).json();
    assert_eq!(idn["name"], "xn--bcher-kva.shop.com");
    fixture.add("other.svc-host.org").await.expect(201);
    let path = format!("/{}/domains", fixture.project);
    let listed = fixture.owner.get(&fixture.server, &path).await.json();
    assert_eq!(listed["domains"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_plan_allows_so_many_domains() {
    let fixture = DomainFixture::new().await;
    let server = &fixture.server;
    let free = Owner::with_plan(server, "small", Plan::Free).await;
    let project = free.project(server, "Small").await;
    let path = format!("/{project}/domains");
    let add = async |name: &str| free.post(server, &path, &json!({ "name": name })).await;
    add("a.shop.com").await.expect(201);
    let problem = add("b.shop.com").await.problem(403, "plan_limit");
    assert!(problem["detail"].as_str().unwrap().contains("1 domain"));
    add("a.shop.com").await.expect(201);
    free.delete(server, &format!("{path}/a.shop.com"))
        .await
        .expect(204);
    add("b.shop.com").await.expect(201);
    for number in 0..10 {
        fixture.add(&format!("{number}.shop.com")).await.expect(201);
    }
    fixture
        .add("more.shop.com")
        .await
        .problem(403, "plan_limit");
}

#[tokio::test]
async fn others_have_no_part_in_a_projects_domains() {
    let fixture = DomainFixture::new().await;
    fixture.add(NAME).await.expect(201);
    let stranger = Owner::new(&fixture.server, "stranger").await;
    let nobody = Owner::with_credential("ns_nobody");
    let base = format!("/api/v1/projects/{}/domains", fixture.project);
    let body = json!({ "name": "a.shop.com" });
    let change = json!({ "redirect_to": null });
    for (method, path, body) in [
        (Method::GET, base.clone(), None),
        (Method::POST, base.clone(), Some(&body)),
        (Method::GET, format!("{base}/{NAME}"), None),
        (Method::PATCH, format!("{base}/{NAME}"), Some(&change)),
        (Method::DELETE, format!("{base}/{NAME}"), None),
        (Method::POST, format!("{base}/{NAME}/verify"), None),
    ] {
        for (owner, status, code) in [
            (&stranger, 403, "forbidden"),
            (&nobody, 401, "unauthorized"),
        ] {
            let answer = owner.send_request(&fixture.server, method.clone(), &path, body);
            answer.await.problem(status, code);
        }
    }
    assert_eq!(fixture.state(NAME).await, "pending");
}

#[tokio::test]
async fn without_origins_of_projects_there_are_no_domains() {
    let settings = |settings: &mut svc::config::Settings| {
        settings.base_url = Some("http://share.svc-host.com".parse().unwrap());
    };
    let server = TestServer::builder().settings(settings).start().await;
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "Shop").await;
    let base = format!("/api/v1/projects/{project}/domains");
    let body = json!({ "name": NAME });
    let change = json!({ "redirect_to": null });
    for (method, path, body) in [
        (Method::GET, base.clone(), None),
        (Method::POST, base.clone(), Some(&body)),
        (Method::GET, format!("{base}/{NAME}"), None),
        (Method::PATCH, format!("{base}/{NAME}"), Some(&change)),
        (Method::DELETE, format!("{base}/{NAME}"), None),
        (Method::POST, format!("{base}/{NAME}/verify"), None),
    ] {
        let answer = owner.send_request(&server, method, &path, body).await;
        answer.problem(503, "domains_unconfigured");
    }
}
