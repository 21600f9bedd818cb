//! Visitors sign in through one node and another: what one begins another completes, and a session that has ended has ended everywhere.

use http::{HeaderMap, Method, header};
use serde_json::{Value, json};
use svc_base::clock::Clock;
use svc_tests::browser::{Browser, StoredCookie, location};
use svc_tests::cluster::{Cluster, ClusterNode};
use svc_tests::stub_issuer::StubIssuer;
use svc_tests::{Answer, ReadAnswer};
use url::Url;

use crate::svc;

/// Returns settings of nodes whose visitors sign in with an issuer.
fn settings(issuer: &StubIssuer) -> String {
    format!(
        "base_url = 'http://svc.test'\nsites_domain = 'pages.test'\n\
         [[providers]]\nname = 'acme'\nissuer = '{}'\nclient_id = 'me'\nclient_secret = 'sesame'\n",
        issuer.address()
    )
}

/// A visitor of the page `room`, whose browser reaches another node with each step.
struct Visitor<'o> {
    cookies: Vec<StoredCookie>,
    /// The page's own origin.
    origin: &'o str,
}

impl<'o> Visitor<'o> {
    fn new(origin: &'o str) -> Self {
        let cookies = Vec::new();
        Self { cookies, origin }
    }

    /// Returns the address of something of the page.
    fn url(&self, below: &str) -> String {
        format!("{}/room{below}", self.origin)
    }

    /// Sends a request to a node: a GET, or a POST of the page's own with a body.
    async fn send(&mut self, node: &ClusterNode, url: &str, body: Option<String>) -> Answer {
        let mut browser = Browser::new(node.process.address());
        browser.cookies = std::mem::take(&mut self.cookies);
        let mut headers = HeaderMap::new();
        let method = match body {
            Some(_) => {
                headers.insert(header::ORIGIN, self.origin.parse().unwrap());
                Method::POST
            }
            None => Method::GET,
        };
        let answer = browser.send_request(method, url, headers, body).await;
        self.cookies = browser.cookies;
        answer
    }

    /// Begins a sign-in at a node; returns the query with which the issuer leads back.
    async fn begin(&mut self, node: &ClusterNode) -> String {
        let url = self.url("/auth/login");
        let answer = self.send(node, &url, None).await.expect(302);
        let sent: Url = location(&url, &answer).parse().unwrap();
        let find = |name: &str| {
            let mut pairs = sent.query_pairs();
            pairs.find(|(found, _)| found == name).unwrap().1
        };
        format!("code={}&state={}", find("nonce"), find("state"))
    }

    /// Comes back from the issuer at a node; returns the address at which the sign-in is completed.
    async fn come_back(&mut self, node: &ClusterNode, query: &str) -> String {
        let url = format!("http://svc.test/_svc/auth/callback/acme?{query}");
        let answer = self.send(node, &url, None).await.expect(302);
        location(&url, &answer)
    }

    /// Completes a sign-in at a node.
    async fn complete(&mut self, node: &ClusterNode, url: &str) {
        let answer = self.send(node, url, None).await.expect(302);
        assert_eq!(location(url, &answer), self.url(""));
    }

    /// Returns who is signed in, as a node says.
    async fn user(&mut self, node: &ClusterNode) -> Value {
        let url = self.url("/auth/status");
        let status = self.send(node, &url, None).await.expect(200);
        status.json()["user"].clone()
    }

    /// Calls the action that is for signed-in visitors at a node.
    async fn call(&mut self, node: &ClusterNode) -> Answer {
        let call = json!({ "action": "me", "params": {} });
        let url = self.url("/api/op");
        self.send(node, &url, Some(call.to_string())).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_node_begins_another_one_completes() {
    let issuer = StubIssuer::start().await;
    issuer.change(|it| it.now = Clock::system().now().0 / 1000);
    let (cluster, owner) = Cluster::with_room_and_settings(svc(), &settings(&issuer)).await;
    let follower = cluster.start("n2", false).await;
    follower.wait_until_ready().await;
    let actions = json!({ "actions": [{ "name": "me", "sql": "SELECT :svc_user_id AS id" }] });
    let path = "/backend/actions";
    let defined = cluster.ask(&owner, Method::PUT, path, &actions).await;
    defined.expect(200);
    let project = format!("/{}", cluster.project());
    let shown = cluster.owner_request(&follower, Method::GET, &project);
    let shown = shown.answer().await.expect(200).json();
    let origin = shown["url"].as_str().unwrap();

    for [begins, takes, ends] in [
        [&follower, &owner, &follower],
        [&owner, &follower, &owner],
        [&follower; 3],
    ] {
        let mut ada = Visitor::new(origin);
        let query = ada.begin(begins).await;
        let complete = ada.come_back(takes, &query).await;
        ada.complete(ends, &complete).await;
        for node in [&owner, &follower] {
            let user = ada.user(node).await;
            assert_eq!(user["email"], "ada@example.com");
            let called = ada.call(node).await.expect(200).json();
            assert_eq!(called["rows"][0]["id"], user["id"]);
        }
        // The browser keeps its cookie: the session itself has ended.
        let cookies = ada.cookies.clone();
        let url = ada.url("/auth/logout");
        ada.send(begins, &url, Some(String::new()))
            .await
            .expect(204);
        ada.cookies = cookies;
        for node in [&follower, &owner] {
            ada.call(node).await.problem(401, "identity_required");
            assert_eq!(ada.user(node).await, Value::Null);
        }
        // Each step counts once, at whichever node.
        let again = ada.come_back(ends, &query).await;
        assert_eq!(again, ada.url("?auth_error=state_invalid"));
    }
    // A sign-in that has begun outlives the node where it began.
    let mut ada = Visitor::new(origin);
    let query = ada.begin(&owner).await;
    assert!(cluster.promote(&follower).await.success);
    owner.process.wait_for_exit().await;
    let complete = ada.come_back(&follower, &query).await;
    ada.complete(&follower, &complete).await;
    let user = ada.user(&follower).await;
    let called = ada.call(&follower).await.expect(200).json();
    assert_eq!(called["rows"][0]["id"], user["id"]);
}
