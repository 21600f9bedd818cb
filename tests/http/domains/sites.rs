//! A site on a domain of its project: it answers at the root there, and its copy below the slug names the root of that domain.

use serde_json::json;

use super::{DomainFixture, NAME};

#[tokio::test]
async fn a_site_answers_at_the_root_of_a_domain() {
    let fixture = DomainFixture::new().await;
    let files = json!({
        "index.html": { "text": "home" }, "about.html": { "text": "about" },
        "404.html": { "text": "none" }, "healthz": { "text": "no probe" },
    });
    let site = json!({ "type": "site", "files": files, "requested_slug": "site" });
    let path = format!("/{}/frontends", fixture.project);
    let made = fixture.owner.post(&fixture.server, &path, &site).await;
    made.expect(201);
    fixture.publish("room").await;
    fixture.prove(NAME).await;
    let host = fixture.host(NAME);
    for (path, text) in [
        ("/", "home"),
        ("/about", "about"),
        ("/healthz", "no probe"),
        ("/site/about", "about"),
    ] {
        let answer = fixture.visit(&host, path).await.expect(200);
        assert_eq!(answer.text(), text, "{path}");
    }
    let missing = fixture.visit(&host, "/nothing").await.expect(404);
    assert_eq!(missing.text(), "none");
    // A page of the project comes before the files of the site.
    let page = fixture.visit(&host, "/room").await.expect(200);
    assert_ne!(page.text(), "none");
    let copy = fixture.visit(&host, "/site/about").await.expect(200);
    let link = format!("<http://{host}/about>; rel=\"canonical\"");
    assert_eq!(copy.header("link"), Some(&*link));
    // A redirect goes by the path that was asked for, also where a site has it.
    let other = "shop.com";
    fixture.prove(other).await;
    let redirect = json!({ "redirect_to": NAME });
    fixture.patch(other, &redirect).await.expect(200);
    for path in ["/about?a=b", "/healthz", "//elsewhere.net", "/%2e/x"] {
        let answer = fixture.visit(other, path).await.expect(308);
        let location = format!("http://{NAME}{path}");
        assert_eq!(answer.header("location"), Some(&*location), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
    }
}
