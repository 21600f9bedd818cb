//! The files of `docs/proxy`, each run by its own program in front of a server: what has to come through does.
//!
//! Without the program there is nothing to try; `SVC_TEST_EVERYTHING`, which the continuous integration sets, makes that a failure.

mod programs;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use futures_util::{SinkExt as _, StreamExt as _};
use http::header;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer, http_client, wait_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use self::programs::{
    CADDY, NGINX, ProxyFolder, ProxyProgram, RunningProxy, find_program, free_port,
};
use crate::owner::{Owner, text};

const HOST: &str = "share.example.com";
const SITES: &str = "pages.example.com";

/// The origin of the project that is tried.
const PROJECT: &str = "house-acme.pages.example.com";

/// A server, its owner's project, and a proxy in front.
struct ProxiedServer {
    server: TestServer,
    owner: Owner,
    folder: ProxyFolder,
    _proxy: RunningProxy,
}

impl ProxiedServer {
    async fn start(kind: &ProxyProgram) -> Option<Self> {
        let program = find_program(kind.program)?;
        let (http, https) = (free_port(), free_port());
        let server = TestServer::builder().settings(|settings| {
            settings.base_url = Some(format!("https://{HOST}:{https}").parse().unwrap());
            settings.sites_domain = Some(format!("{SITES}:{https}"));
            settings.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
            settings.limits.deploy_burst = 3;
        });
        let server = server.start().await;
        let owner = Owner::new(&server, "acme").await;
        let folder = ProxyFolder::new(server.address(), http, https);
        let proxy = RunningProxy::start(kind, &program, &folder);
        let site = Self {
            server,
            owner,
            folder,
            _proxy: proxy,
        };
        let client = site.client(1);
        let ready = async || {
            let answer = client.get(site.url(HOST, "/readyz")).send().await.ok()?;
            (answer.status() == 200).then_some(())
        };
        wait_until(&format!("{} to serve", kind.program), ready).await;
        Some(site)
    }

    /// A client at an address of its own: 127.0.0.`number`.
    fn client(&self, number: u8) -> Client {
        self.client_builder(number).build().unwrap()
    }

    fn client_builder(&self, number: u8) -> reqwest::ClientBuilder {
        let proxy = SocketAddr::from((Ipv4Addr::LOCALHOST, self.folder.https));
        http_client()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .tls_danger_accept_invalid_certs(true)
            .local_address(IpAddr::from([127, 0, 0, number]))
            .resolve(HOST, proxy)
            .resolve(PROJECT, proxy)
    }

    fn url(&self, host: &str, path: &str) -> String {
        format!("https://{host}:{}{path}", self.folder.https)
    }

    async fn share(&self, client: &Client, claimed: &str) -> Answer {
        let url = self.url(HOST, "/api/v1/deploy");
        let request = client.post(url).header("x-forwarded-for", claimed);
        request.json(&json!({ "content": "x" })).answer().await
    }

    /// A project with a page `room` whose backend has rooms and an action.
    async fn populate(&self) {
        let project = self.owner.project(&self.server, "House").await;
        let backend = json!({ "ddl": "CREATE TABLE notes (text)", "realtime": true });
        let path = format!("/{project}/backend");
        let made = self.owner.post(&self.server, &path, &backend).await;
        made.expect(201);
        let actions = json!({ "actions": [
            { "name": "write", "sql": "INSERT INTO notes VALUES (:text)" },
            { "name": "all", "sql": "SELECT text FROM notes" },
        ] });
        let path = format!("{path}/actions");
        let put = http::Method::PUT;
        let defined = self.owner.send(&self.server, put, &path, &actions).await;
        defined.expect(200);
        let page = self.owner.frontend(&self.server, &project, "room").await;
        assert_eq!(text(&page["url"]), self.url(PROJECT, "/room"));
    }
}

async fn check_everything_passes(kind: ProxyProgram) {
    let Some(site) = ProxiedServer::start(&kind).await else {
        return;
    };
    site.populate().await;
    check_pages(&site).await;
    check_too_large_body(&site).await;
    check_client_buckets(&site).await;
    check_events(&site).await;
    check_sockets(&site).await;
}

/// Pages of both hosts, as the server has compressed and tagged them, and the way from `http`.
async fn check_pages(site: &ProxiedServer) {
    let client = site.client(1);
    for url in [site.url(HOST, "/"), site.url(PROJECT, "/room")] {
        let send_request = || client.get(&url).header(header::ACCEPT_ENCODING, "br");
        let page = send_request().answer().await.expect(200);
        assert_eq!(page.header("content-encoding"), Some("br"), "{url}");
        let etag = page.header("etag").unwrap();
        assert!(etag.starts_with('"') && etag.ends_with("-br\""), "{etag}");
        send_request()
            .header(header::IF_NONE_MATCH, etag)
            .answer()
            .await
            .expect(304);
    }
    let plain = SocketAddr::from((Ipv4Addr::LOCALHOST, site.folder.http));
    let plain = site.client_builder(1).resolve(HOST, plain).build().unwrap();
    let url = format!("http://{HOST}:{}/room?a=1", site.folder.http);
    let answer = plain.get(url).answer().await.expect(308);
    let there = answer.header("location").unwrap().to_owned();
    assert!(there.starts_with(&format!("https://{HOST}")), "{there}");
    assert!(there.ends_with("/room?a=1"), "{there}");
    // A foreign name is refused, and an encoded path arrives as it was sent.
    let client = client.get(site.url(HOST, "/a%2Fb")).answer().await;
    client.problem(404, "not_found");
}

/// A body that is too large is the server's to refuse.
async fn check_too_large_body(site: &ProxiedServer) {
    let most = 1 << 20;
    let client = site.client(2);
    let send = async |bytes: usize| {
        let body = json!({ "content": "x".repeat(bytes) }).to_string();
        let url = site.url(HOST, "/api/v1/deploy");
        client.post(url).body(body).answer().await
    };
    let around = json!({ "content": "" }).to_string().len();
    send(most - around).await.expect(201);
    let refused = send(most - around + 1).await;
    refused.problem(413, "payload_too_large");
}

/// Each client has its own bucket, whatever it says of itself.
async fn check_client_buckets(site: &ProxiedServer) {
    let (one, other) = (site.client(3), site.client(4));
    for number in 1..=3 {
        let shared = site.share(&one, &format!("9.9.9.{number}")).await;
        shared.expect(201);
    }
    site.share(&one, "9.9.9.9")
        .await
        .problem(429, "rate_limited");
    site.share(&other, "127.0.0.3").await.expect(201);
}

async fn write(site: &ProxiedServer, client: &Client, note: &str) {
    let call = json!({ "action": "write", "params": { "text": note } });
    let url = site.url(PROJECT, "/room/api/op");
    client.post(url).json(&call).answer().await.expect(200);
}

/// Server-sent events come when they are sent, and not when the stream has ended.
async fn check_events(site: &ProxiedServer) {
    let client = site.client(5);
    let url = site.url(PROJECT, "/room/api/live?action=all");
    let stream = client.get(url).header(header::ACCEPT, "text/event-stream");
    let mut stream = stream.send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let mut came = String::new();
    for (number, note) in [(1, None), (2, Some("tea")), (3, Some("coffee"))] {
        if let Some(note) = note {
            write(site, &client, note).await;
        }
        // An event ends with an empty line; its parts may come one by one.
        let id = format!("id: {number}\n");
        while !came.contains(&id) || !came.ends_with("\n\n") {
            let chunk = stream.chunk().await.unwrap().expect("it goes on");
            came.push_str(std::str::from_utf8(&chunk).unwrap());
        }
        assert!(came.contains(note.unwrap_or_default()), "{came}");
    }
}

/// The next envelope that a member of a room hears.
async fn next_envelope<S>(socket: &mut WebSocketStream<S>) -> Value
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    loop {
        if let Message::Text(said) = socket.next().await.unwrap().unwrap() {
            return serde_json::from_str(&said).unwrap();
        }
    }
}

fn upgrade(request: RequestBuilder, origin: &str) -> RequestBuilder {
    request
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==")
        .header(header::ORIGIN, origin)
}

/// Two members of a room hear each other, and a page of another origin is refused.
async fn check_sockets(site: &ProxiedServer) {
    let client = site.client_builder(6).http1_only().build().unwrap();
    let url = site.url(PROJECT, "/room/ws?room=hall");
    let origin = site.url(PROJECT, "");
    let join = async || {
        let answer = upgrade(client.get(&url), &origin).send().await.unwrap();
        assert_eq!(answer.status(), 101);
        let stream = answer.upgrade().await.unwrap();
        let mut socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
        assert_eq!(next_envelope(&mut socket).await["type"], "svc:welcome");
        socket
    };
    let (mut one, mut other) = (join().await, join().await);
    let message = json!({ "v": 1, "type": "say", "data": "hello" });
    one.send(Message::text(message.to_string())).await.unwrap();
    let heard = loop {
        let heard = next_envelope(&mut other).await;
        if heard["type"] == "say" {
            break heard;
        }
    };
    assert_eq!(heard["data"], "hello");
    let foreign = upgrade(client.get(&url), "https://evil.example");
    foreign.answer().await.problem(403, "origin_refused");
}

#[tokio::test]
async fn caddy_hands_everything_on() {
    check_everything_passes(CADDY).await;
}

#[tokio::test]
async fn nginx_hands_everything_on() {
    check_everything_passes(NGINX).await;
}
