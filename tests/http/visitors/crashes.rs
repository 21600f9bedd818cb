//! Death as a session begins: who was answered stays signed in, and who was not signs in again as who they were.

use serde_json::{Value, json};
use svc_tests::browser::Browser;
use svc_tests::{Answer, ReadAnswer};
use tempfile::TempDir;

use crate::crashes::{OwnerProcess, fault_group, fault_points};
use crate::owner::text;
use crate::svc;

/// Deeds that lead to the points here.
pub(crate) const FAULT_GROUPS: [&str; 1] = ["visitors"];

const ADA: &str = "name=Ada&email=ada%40example.com";
const BOB: &str = "name=Bob&email=bob%40example.com";

/// Signs in on a page with the provider of the server itself.
async fn sign_in(browser: &mut Browser, page: &str, form: &str) -> Answer {
    let (at, asked) = browser.open(&format!("{page}/auth/login")).await;
    asked.expect(200);
    let sent = browser.submit(&at, form).await.expect(303);
    browser.follow(&at, sent).await.1
}

async fn user(browser: &mut Browser, page: &str) -> Value {
    let status = browser.get(&format!("{page}/auth/status")).await;
    status.expect(200).json()["user"].clone()
}

/// The address of the page, which has the port that the server has now.
async fn page(site: &OwnerProcess<'_>, project: &str) -> String {
    let (_, page) = site.get(&format!("/{project}/frontends/shop")).await;
    text(&page["url"])
}

#[tokio::test]
async fn whatever_the_point_of_death_who_was_signed_in_stays_so() {
    let mut seen = 0;
    for point in fault_points()
        .into_iter()
        .filter(|p| FAULT_GROUPS.contains(&fault_group(p)))
    {
        seen += 1;
        let data = TempDir::new().unwrap();
        let process = svc().serve(data.path(), &["--dev"]).await;
        let make = ["key", "create", "dev", "--json"];
        let made = svc().run(data.path(), &make).await.json();
        let credential = text(&made["credential"]);
        let site = OwnerProcess {
            process,
            credential: &credential,
        };
        let (_, project) = site.post("", json!({ "name": "Shop" })).await;
        let project = text(&project["id"]);
        let shop = json!({ "type": "html", "content": "x", "requested_slug": "shop" });
        let (status, made) = site.post(&format!("/{project}/frontends"), shop).await;
        assert_eq!(status, 201, "{made}");
        let mut ada = Browser::new(site.process.address());
        let url = page(&site, &project).await;
        sign_in(&mut ada, &url, ADA).await.expect(200);
        let before = user(&mut ada, &url).await;
        let cookie = ada.cookie(&format!("{url}/auth/status")).unwrap();
        site.process.kill().await;

        let process = svc()
            .serve_to_fault(Some(&point), data.path(), &["--dev"])
            .await;
        let dying = OwnerProcess {
            process,
            credential: &credential,
        };
        let url = page(&dying, &project).await;
        let mut bob = Browser::new(dying.process.address());
        let walk = tokio::spawn(async move { sign_in(&mut bob, &url, BOB).await });
        assert!(walk.await.is_err(), "{point}: it answered");
        let (status, _) = dying.process.wait_for_exit().await;
        assert!(!status.success(), "{point}: it did not die");

        let site = OwnerProcess {
            process: svc().serve(data.path(), &["--dev"]).await,
            credential: &credential,
        };
        let url = page(&site, &project).await;
        let host = url.split('/').nth(2).unwrap().to_owned();
        let asked = site.process.client();
        let asked = asked.get(site.process.url("/shop/auth/status"));
        let asked = asked.header("host", host).header("cookie", cookie);
        let status = asked.answer().await.expect(200).json();
        assert_eq!(status["user"], before, "{point}");
        let mut bob = Browser::new(site.process.address());
        sign_in(&mut bob, &url, BOB).await.expect(200);
        assert_eq!(user(&mut bob, &url).await["name"], "Bob", "{point}");
        let list = ["visitors", "list", &project, "--json"];
        let list = svc().run(data.path(), &list).await.json();
        assert_eq!(list["visitors"].as_array().unwrap().len(), 2, "{list}");
        let check = svc().run(data.path(), &["check"]).await;
        assert!(check.success, "{check:?}");
        site.process.kill().await;
    }
    assert_eq!(seen, 1);
}
