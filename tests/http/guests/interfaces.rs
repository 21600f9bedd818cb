//! Guests of the interface before the current one, and what operators see of interfaces.

use svc_tests::guests::renderer_of_interface_1;

use super::*;

/// The release that refuses guests of `svc:render@1.0.0`.
const END: &str = "0.3.0";

#[tokio::test]
async fn a_guest_of_the_interface_before_serves_and_status_says_until_when() {
    let (server, folder) = (start().await, TempDir::new().unwrap());
    let component = renderer_of_interface_1();
    let file = write(folder.path(), "before", &component);
    let installed = install(&server, &file).await;
    let check = &installed["check"];
    assert_eq!(
        (&check["version"], &check["taken_until"], &check["ok"]),
        (&json!("1.0.0"), &json!(END), &json!(true)),
        "{check}"
    );
    let first = page(&server, "# A <heading>\n").await;
    assert_eq!(page_signature(first.text()), Some("before"));

    // It is given a title, or the name; it has no foot, and a frontend's page has its runtime.
    let titled = json!({ "type": "json", "content": "[1]", "title": "A <title>" });
    let titled = server.json("/api/v1/deploy", &titled).answer().await;
    let titled = titled.expect(201).json();
    assert_eq!(titled["title"], "A <title>");
    let shown = server.get(&format!("/{}", titled["slug"].as_str().unwrap()));
    assert!(shown.answer().await.text().contains("A &lt;title>"));
    let named = json!({ "type": "csv", "content": "a,b", "name": "by-its-name" });
    let named = server.json("/api/v1/deploy", &named).answer().await;
    assert_eq!(named.expect(201).json()["title"], "by-its-name");
    let html = json!({ "type": "html", "content": "<p>as it is", "name": "html" });
    server
        .json("/api/v1/deploy", &html)
        .answer()
        .await
        .expect(201);
    assert_eq!(server.get("/html").answer().await.text(), "<p>as it is");
    let owner = Owner::new(&server, "acme").await;
    let project = owner.project(&server, "House").await;
    let room = json!({ "type": "markdown", "content": "x", "requested_slug": "room" });
    let path = format!("/{project}/frontends");
    owner.post(&server, &path, &room).await.expect(201);
    let room = server.get("/room").answer().await;
    assert!(
        room.text().contains("data-slug=\"room\""),
        "{}",
        room.text()
    );

    let render = status(&server).await["render"].clone();
    assert_eq!(render["interface"], "svc:render@1.0.0");
    assert_eq!(render["taken_until"], END);
    assert_eq!(render["digest"], json!(digest(&component)));
    let text = server.command(&svc(), &["guest", "status"]).await.stdout;
    let told = format!("svc {END} refuses this interface");
    assert!(text.contains(&told), "{text}");
    let gate = status(&server).await["gate"].clone();
    assert_eq!(
        (&gate["interface"], &gate["taken_until"]),
        (&json!("svc:gate@1.0.0"), &Value::Null)
    );

    // The next start takes it, too: that is what an upgrade of the host is to it.
    let server = server.restart().await;
    assert_eq!(
        page_signature(page(&server, "# x").await.text()),
        Some("before")
    );
}

#[tokio::test]
async fn a_guest_of_no_interface_that_is_taken_is_refused_before_it_is_compiled() {
    let (server, folder) = (start().await, TempDir::new().unwrap());
    let component = renderer_of_interface_1();
    let of = |version: &str| {
        let mut other = component.clone();
        let known = b"svc:render/renderer@1.0.0";
        let at = other
            .windows(known.len())
            .position(|window| window == known);
        let at = at.unwrap() + known.len() - version.len();
        other[at..at + version.len()].copy_from_slice(version.as_bytes());
        other
    };
    let cache = folder.path().join("cache");
    for version in ["0.9.0", "3.0.0"] {
        let file = write(folder.path(), "other", &of(version));
        let arguments = [
            "check",
            file.to_str().unwrap(),
            "--cache",
            cache.to_str().unwrap(),
        ];
        let refused = guest(&server, &arguments).await;
        assert!(!refused.success);
        let report: Value = serde_json::from_str(&refused.stdout).unwrap();
        let why = report["refused"].to_string();
        let takes = "this host takes 2.0.0, and 1.0.0 until svc 0.3.0";
        assert!(why.contains(version) && why.contains(takes), "{why}");
    }
    let compiled = std::fs::read_dir(&cache).unwrap();
    let compiled = compiled.filter(|entry| {
        entry
            .as_ref()
            .unwrap()
            .path()
            .extension()
            .is_some_and(|end| end == "cwasm")
    });
    assert_eq!(compiled.count(), 0);
}
