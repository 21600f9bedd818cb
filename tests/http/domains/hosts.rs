//! A domain is its project's origin: hosts, redirects, ends, and a restart.

use http::Method;
use serde_json::json;
use svc_tests::{ReadAnswer, wait_until};

use super::{DomainFixture, NAME};
use crate::owner::text;

#[tokio::test]
async fn an_active_domain_is_the_projects_origin_and_any_other_host_is_none() {
    let fixture = DomainFixture::new().await;
    fixture.publish("room").await;
    let other = fixture.owner.project(&fixture.server, "Other").await;
    fixture
        .owner
        .frontend(&fixture.server, &other, "hall")
        .await;
    let host = fixture.host(NAME);
    fixture
        .visit(&host, "/room")
        .await
        .problem(421, "misdirected");
    let added = fixture.add(NAME).await.expect(201).json();
    fixture
        .visit(&host, "/room")
        .await
        .problem(421, "misdirected");
    fixture.dns.set_record(&added["records"][0]);
    fixture.verify(NAME).await.expect(200);
    for host in [&host, NAME, "WWW.Shop.Com"] {
        let page = fixture.visit(host, "/room").await.expect(200);
        assert!(
            page.header("content-security-policy")
                .is_none_or(|policy| !policy.contains("sandbox"))
        );
        let root = fixture.visit(host, "/").await.expect(302);
        assert_eq!(root.header("location"), Some("/room"));
        let script = page.text().split("<script src=\"").nth(1).unwrap();
        let script = script.split('"').next().unwrap().to_owned();
        fixture.visit(host, &script).await.expect(200);
        for path in ["/hall", "/api/v1/projects", "/mcp", "/llms.txt"] {
            fixture.visit(host, path).await.problem(404, "not_found");
        }
    }
    for host in [
        "shop.com".to_owned(),
        "a.www.shop.com".to_owned(),
        "www.shop.com.".to_owned(),
        format!("{NAME}:1"),
        format!("{NAME}.evil.com"),
    ] {
        fixture
            .visit(&host, "/room")
            .await
            .problem(421, "misdirected");
    }
    // The project's own origin goes on.
    let path = format!("/{}", fixture.project);
    let project = fixture.owner.get(&fixture.server, &path).await.json();
    let label = format!(
        "{}.localhost:{}",
        text(&project["host_label"]),
        fixture.server.address().port()
    );
    assert_eq!(fixture.visit(&label, "/room").await.status, 200);
    // Memory is read anew by the next start.
    let DomainFixture {
        dns,
        server,
        owner,
        project,
    } = fixture;
    let server = server.restart().await;
    let fixture = DomainFixture {
        dns,
        server,
        owner,
        project,
    };
    assert_eq!(fixture.visit(NAME, "/room").await.status, 200);
}

#[tokio::test]
async fn a_domain_ends_with_its_project() {
    let fixture = DomainFixture::new().await;
    fixture.publish("room").await;
    fixture.prove(NAME).await;
    assert_eq!(fixture.visit(NAME, "/room").await.status, 200);
    let path = format!("/{}", fixture.project);
    fixture
        .owner
        .delete(&fixture.server, &path)
        .await
        .expect(204);
    fixture
        .visit(NAME, "/room")
        .await
        .problem(421, "misdirected");
    assert!(
        !fixture
            .server
            .server()
            .app()
            .domains
            .served()
            .contains(NAME)
    );
}

#[tokio::test]
async fn a_domain_sends_its_requests_to_another_host() {
    let fixture = DomainFixture::new().await;
    fixture.publish("room").await;
    let (a, b, c) = ("a.shop.com", "b.shop.com", "c.shop.com");
    for name in [a, b] {
        fixture.prove(name).await;
    }
    fixture.add(c).await.expect(201);
    let path = format!("/{}", fixture.project);
    let project = fixture.owner.get(&fixture.server, &path).await.json();
    let label = format!("{}.localhost", text(&project["host_label"]));
    for (name, to) in [
        (a, a),
        (a, c),
        (a, "elsewhere.com"),
        (a, "localhost"),
        (a, "not a name"),
        (a, "other-acme.localhost"),
    ] {
        let refused = fixture.patch(name, &json!({ "redirect_to": to })).await;
        refused.problem(400, "invalid_request");
    }
    fixture
        .patch(a, &json!({}))
        .await
        .problem(400, "nothing_to_update");
    fixture
        .patch("x.shop.com", &json!({ "redirect_to": b }))
        .await
        .problem(404, "not_found");
    // A missing domain is told before a wrong request.
    for body in [json!({}), json!({ "unknown": 1 })] {
        let refused = fixture.patch("x.shop.com", &body).await;
        refused.problem(404, "not_found");
    }
    fixture
        .get("x.shop.com?unknown=1")
        .await
        .problem(404, "not_found");
    let with_port = json!({ "redirect_to": format!("{}.:8080", b.to_uppercase()) });
    fixture.patch(a, &with_port).await.expect(200);
    let changed = fixture
        .patch(a, &json!({ "redirect_to": b }))
        .await
        .expect(200);
    assert_eq!(changed.json()["redirect_to"], b);
    let location = async |host: &str, path: &str| {
        let answer = fixture.visit(host, path).await.expect(308);
        answer.header("location").unwrap().to_owned()
    };
    assert_eq!(
        location(a, "/room?x=1&y=%20").await,
        format!("http://{b}/room?x=1&y=%20")
    );
    let with_port = fixture.host(a);
    assert_eq!(
        location(&with_port, "/").await,
        format!("http://{}/", fixture.host(b))
    );
    let posted = format!(
        "POST /room/api/op HTTP/1.1\r\nHost: {a}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    fixture.server.raw(posted).await.expect(308);
    assert_eq!(fixture.visit(b, "/room").await.status, 200);
    // Never in a circle.
    fixture
        .patch(b, &json!({ "redirect_to": a }))
        .await
        .problem(400, "invalid_request");
    // A target that is gone redirects nobody.
    fixture.delete(b).await.expect(204);
    assert_eq!(fixture.visit(a, "/room").await.status, 200);
    let port = fixture.server.address().port();
    let changed = fixture
        .patch(a, &json!({ "redirect_to": format!("{label}:{port}") }))
        .await;
    assert_eq!(changed.expect(200).json()["redirect_to"], label);
    assert_eq!(
        location(a, "/room").await,
        format!("http://{label}:{port}/room")
    );
    fixture
        .patch(a, &json!({ "redirect_to": null }))
        .await
        .expect(200);
    assert_eq!(fixture.visit(a, "/room").await.status, 200);
    // At once with the domain, too.
    let body = json!({ "name": "d.shop.com", "redirect_to": a });
    let added = fixture
        .add_to(&fixture.project, &body)
        .await
        .expect(201)
        .json();
    assert_eq!(added["redirect_to"], a);
    let body = json!({ "name": "d.shop.com", "redirect_to": label });
    let again = fixture.add_to(&fixture.project, &body).await;
    assert_eq!(again.expect(201).json()["redirect_to"], label);
}

#[tokio::test]
async fn a_proxy_asks_which_names_have_certificates() {
    let fixture = DomainFixture::with_settings(|settings| {
        settings.ops_listen = Some(([127, 0, 0, 1], 0).into());
    });
    let fixture = fixture.await;
    fixture.add("pending.shop.com").await.expect(201);
    fixture.prove(NAME).await;
    let ops = fixture.server.server().ops_address().unwrap();
    let path = format!("/{}", fixture.project);
    let project = fixture.owner.get(&fixture.server, &path).await.json();
    let label = format!("{}.localhost", text(&project["host_label"]));
    for (query, status) in [
        (format!("?domain={NAME}"), 200),
        ("?domain=WWW.SHOP.COM".to_owned(), 200),
        ("?domain=localhost".to_owned(), 200),
        (format!("?domain={label}"), 200),
        ("?domain=pending.shop.com".to_owned(), 404),
        ("?domain=evil.com".to_owned(), 404),
        ("?domain=nobody-acme.localhost".to_owned(), 404),
        (format!("?domain={NAME}:443"), 404),
        ("?domain=".to_owned(), 404),
        (format!("?domain={NAME}."), 200),
        (String::new(), 404),
    ] {
        let client = svc_tests::http_client().no_proxy().build().unwrap();
        let url = format!("http://{ops}/tls/ask{query}");
        let answer = client.request(Method::GET, url).answer().await;
        assert_eq!(answer.status, status, "{query}");
    }
    // Nobody asks the public listener.
    let answer = fixture.server.get("/tls/ask?domain=a").answer().await;
    assert_eq!(answer.status, 404);
}

#[tokio::test]
async fn an_edge_forgets_pages_on_domains_too() {
    let fixture = DomainFixture::with_settings(|settings| {
        settings.edge = Some(svc::config::EdgeCacheSettings {
            zone_id: "zone".into(),
            api_token: "token".into(),
            // Nobody listens, so that the queue stays.
            api_base: "http://127.0.0.1:9/client/v4".parse().unwrap(),
        });
    });
    let fixture = fixture.await;
    fixture.publish("room").await;
    fixture.prove(NAME).await;
    let body = json!({ "content": "# Two" });
    let path = format!("/{}/frontends/room", fixture.project);
    let published = fixture
        .owner
        .send(&fixture.server, Method::PUT, &path, &body)
        .await;
    published.expect(200);
    let control = &fixture.server.server().app().control;
    let queued = async || {
        let read = control.read(|c| {
            c.prepare("SELECT prefix FROM purges")?
                .query_map([], |row| row.get::<_, String>(0))?
                .collect::<Result<Vec<_>, _>>()
        });
        let prefixes = read.await.unwrap();
        let has = |prefix: String| prefixes.contains(&prefix);
        (has(format!("{NAME}/room")) && has(format!("{NAME}/"))).then_some(())
    };
    wait_until("the purges to be queued", queued).await;
}
