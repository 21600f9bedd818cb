//! A server, and what was learnt of it: both doors learn the same, in the same order.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};
use svc_tests::dns::DnsServer;
use svc_tests::{Answer, ReadAnswer, TestServer, TokenIssuer};

use super::rest_mapping::{Route, actions, routes};
use crate::domains::use_dns;
use crate::mcp::client::{Client, ToolResult};
use crate::members::MembersFixture;
use crate::owner::Owner;

pub(super) struct ParityServer {
    pub(super) server: TestServer,
    pub(super) routes: BTreeMap<String, Route>,
    owner: Owner,
    /// A user, who calls where a key has no say.
    user: Owner,
    /// Issuer that knows the users.
    _issuer: TokenIssuer,
    /// Server that proofs of domains are looked up at.
    dns: DnsServer,
    /// Values that calls name.
    values: BTreeMap<String, String>,
    /// Ids in the order in which they appeared.
    ids: Vec<String>,
}

impl ParityServer {
    pub(super) async fn new() -> Self {
        let dns = DnsServer::start().await;
        let builder = TestServer::builder().settings(|settings| use_dns(settings, &dns));
        let fixture = MembersFixture::with_settings(builder, |_| ()).await;
        let owner = Owner::new(&fixture.server, "acme").await;
        Owner::new(&fixture.server, "zeta").await;
        let (user, bob) = (fixture.user("alice").await, fixture.user("bob").await);
        let MembersFixture { server, issuer } = fixture;
        let kept = [
            ("free", "00000000-0000-7000-8000-000000000000"),
            ("nobody", "01a1fc20-6ee3-7da4-ae81-ade539ecfe63"),
            ("page", "<!doctype html><title>Room</title><p>one"),
            ("long", &"x".repeat(16 << 10)),
            ("alice", &user.id),
            ("bob", &bob.id),
        ];
        let kept = kept.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self {
            routes: routes(&server).await,
            server,
            owner,
            user: user.owner,
            _issuer: issuer,
            dns,
            values: kept.into(),
            ids: Vec::new(),
        }
    }

    /// Arguments with the values that they name.
    pub(super) fn substitute_values(&self, arguments: &Value) -> Value {
        let text = self
            .values
            .iter()
            .fold(arguments.to_string(), |text, (name, value)| {
                text.replace(&format!("\"${name}\""), &json!(value).to_string())
            });
        serde_json::from_str(&text).unwrap()
    }

    /// Keeps a value of an answer: `name=/pointer`.
    pub(super) fn remember_value(&mut self, wanted: &str, document: &Value) {
        let (name, pointer) = wanted.split_once('=').unwrap();
        let value = document.pointer(pointer).and_then(Value::as_str);
        let value = value.unwrap_or_else(|| panic!("no {pointer} in {document}"));
        self.values.insert(name.to_owned(), value.to_owned());
    }

    /// Has DNS prove a domain that was added.
    pub(super) fn prove_domain(&self, added: &Value) {
        self.dns.set_record(&added["records"][0]);
    }

    fn caller(&self, id: &str) -> &Owner {
        match actions()[id] {
            ("manage_workspace", _) => &self.user,
            _ => &self.owner,
        }
    }

    pub(super) async fn call_rest(&self, id: &str, arguments: &Value) -> Answer {
        self.call_rest_with_key(id, arguments, None).await
    }

    /// Asks REST, if need be with an `Idempotency-Key`.
    pub(super) async fn call_rest_with_key(
        &self,
        id: &str,
        arguments: &Value,
        key: Option<&str>,
    ) -> Answer {
        let route = &self.routes[id];
        let (path, body) = route.rest_request(id, &self.substitute_values(arguments));
        let method = route.method.clone();
        let mut request = self.caller(id).request(&self.server, method, &path);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        match route.method {
            Method::GET | Method::DELETE => request.answer().await,
            _ => request.json(&body).answer().await,
        }
    }

    pub(super) async fn call_tool(&self, id: &str, arguments: &Value) -> ToolResult {
        let (tool, action) = actions()[id];
        let mut arguments = self.substitute_values(arguments);
        if !action.is_empty() {
            arguments["action"] = action.into();
        }
        let client = Client::with_credential(&self.server, &self.caller(id).credential);
        client.call(tool, &arguments).await
    }

    /// A document without what must differ between two servers: ports, ids, and which part of a request it names.
    pub(super) fn normalize(&mut self, document: &Value) -> Value {
        let port = format!(":{}", self.server.address().port());
        let mut text = document.to_string().replace(&port, "");
        for name in ["alice", "bob"] {
            text = text.replace(&self.values[name], &format!("<{name}>"));
        }
        for id in uuids(&text) {
            if !self.ids.contains(&id) {
                self.ids.push(id.clone());
            }
            let number = self.ids.iter().position(|known| *known == id).unwrap();
            text = text.replace(&id, &format!("<id {number}>"));
        }
        for prefix in ["svcd_", ":\"price_", "://r-", ":\"d-", "svc-domain="] {
            text = without_secrets(text, prefix);
        }
        for part in ["In the body: ", "In the query: "] {
            text = text.replace(part, "In the arguments: ");
        }
        text = text.replace("`name` cannot be a slug", "`slug` cannot be a slug");
        let mut document: Value = serde_json::from_str(&text).unwrap();
        if let Some(detail) = document["detail"].as_str() {
            // The place is one in a text that a tool's caller never wrote.
            let said = detail.split(" at line ").next().unwrap();
            document["detail"] = said.trim_end_matches('.').into();
        }
        if !document["inventory"].is_null() {
            document["inventory"]["bytes_on_disk"] = 0.into();
        }
        // The size of the history depends on the ids and times that it compresses.
        if !document["moments"].is_null() {
            document["bytes"] = 0.into();
        }
        document
    }
}

/// A text without the random part of what begins like this.
fn without_secrets(mut text: String, prefix: &str) -> String {
    let alphanumeric = |c: char| c.is_ascii_alphanumeric();
    while let Some((before, secret)) = text
        .split_once(prefix)
        .filter(|(_, rest)| rest.starts_with(alphanumeric))
    {
        let rest = secret.trim_start_matches(alphanumeric);
        let kept = prefix.rfind('"').map_or("", |quote| &prefix[..=quote]);
        text = format!("{before}{kept}<token>{rest}");
    }
    text
}

fn uuids(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let is_uuid = |window: &[u8]| {
        window.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    let windows = bytes.windows(36).filter(|window| is_uuid(window));
    windows
        .map(|window| String::from_utf8(window.to_vec()).unwrap())
        .collect()
}
