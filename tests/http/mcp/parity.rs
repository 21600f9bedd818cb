//! Parity: every action of every tool, beside the REST call that does the same, on two servers that live alike.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, Ask, TestServer, TokenIssuer};

use super::client::{Called, Client};
use super::listing;
use super::parity_twins::{Step, steps};
use crate::account::Owner;
use crate::members::House;

/// A server, and what was learnt of it: both ways learn the same, in the same order.
struct World {
    server: TestServer,
    owner: Owner,
    /// A user, who calls where a key has no say.
    user: Owner,
    /// Issuer that knows the users.
    _issuer: TokenIssuer,
    /// Values that later steps name.
    kept: BTreeMap<&'static str, String>,
    /// Ids in the order in which they appeared.
    ids: Vec<String>,
}

impl World {
    async fn new() -> Self {
        let House { server, issuer } = House::new().await;
        let owner = Owner::new(&server, "acme").await;
        Owner::new(&server, "zeta").await;
        let house = House { server, issuer };
        let (user, bob) = (house.user("alice").await, house.user("bob").await);
        let House { server, issuer } = house;
        let kept = BTreeMap::from([
            ("free", "00000000-0000-7000-8000-000000000000".to_owned()),
            ("nobody", "01a1fc20-6ee3-7da4-ae81-ade539ecfe63".to_owned()),
            ("alice", user.id.clone()),
            ("bob", bob.id.clone()),
        ]);
        Self {
            server,
            owner,
            user: user.owner,
            _issuer: issuer,
            kept,
            ids: Vec::new(),
        }
    }

    fn filled(&self, text: &str) -> String {
        let kept = self.kept.iter();
        kept.fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("${name}"), value)
        })
    }

    fn filled_in(&self, document: &Value) -> Value {
        serde_json::from_str(&self.filled(&document.to_string())).unwrap()
    }

    /// A document without what must differ between two servers: ports, ids, and which part of a request it names.
    fn comparable(&mut self, document: &Value) -> Value {
        let port = format!(":{}", self.server.address().port());
        let mut text = document.to_string().replace(&port, "");
        for name in ["alice", "bob"] {
            text = text.replace(&self.kept[name], &format!("<{name}>"));
        }
        for id in uuids(&text) {
            if !self.ids.contains(&id) {
                self.ids.push(id.clone());
            }
            let number = self.ids.iter().position(|known| *known == id).unwrap();
            text = text.replace(&id, &format!("<id {number}>"));
        }
        // Tokens are secrets of their own on either server.
        for prefix in ["svcd_", "\"price_"] {
            while let Some((before, secret)) = text
                .split_once(prefix)
                .filter(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
            {
                let rest = secret.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
                let quote = if prefix.starts_with('"') { "\"" } else { "" };
                text = format!("{before}{quote}<token>{rest}");
            }
        }
        for part in ["In the body: ", "In the query: "] {
            text = text.replace(part, "In the arguments: ");
        }
        text = text.replace("`name` cannot be a slug", "`slug` cannot be a slug");
        let mut document: Value = serde_json::from_str(&text).unwrap();
        if let Some(detail) = document["detail"].as_str() {
            let place = detail.split(" at line ").next().unwrap();
            document["detail"] = place.trim_end_matches('.').into();
        }
        if !document["inventory"].is_null() {
            document["inventory"]["bytes_on_disk"] = 0.into();
        }
        // What history takes on the disk depends on the ids and times that it packs.
        if !document["moments"].is_null() {
            document["bytes"] = 0.into();
        }
        document
    }

    fn keep(&mut self, step: &Step, document: &Value) {
        for (name, pointer) in &step.keep {
            let value = document.pointer(pointer).and_then(Value::as_str);
            let value = value.unwrap_or_else(|| panic!("no {pointer} in {document}"));
            self.kept.insert(name, value.to_owned());
        }
    }

    fn caller(&self, step: &Step) -> &Owner {
        match step.tool {
            "manage_workspace" => &self.user,
            _ => &self.owner,
        }
    }

    async fn rest(&self, step: &Step) -> Answer {
        let path = self.filled(&step.path);
        let caller = self.caller(step);
        let request = caller.request(&self.server, step.method.clone(), &path);
        match step.method {
            Method::GET | Method::DELETE => request.answer().await,
            _ => request.json(&self.filled_in(&step.body)).answer().await,
        }
    }

    /// Of a file, a tool answers where REST has it.
    fn named(&self, step: &Step, answer: &Answer, disposition: &str) -> Value {
        let port = self.server.address().port();
        let name = disposition.strip_prefix("attachment; filename=").unwrap();
        json!({
            "url": format!("http://localhost:{port}{}", self.filled(&step.path)),
            "content_type": answer.header("content-type").unwrap(),
            "file_name": name.trim_matches('"'),
        })
    }

    async fn mcp(&self, step: &Step) -> Called {
        let client = Client::of(&self.server, &self.caller(step).credential);
        client
            .call(step.tool, &self.filled_in(&step.arguments))
            .await
    }
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

#[tokio::test]
async fn every_action_answers_what_its_rest_twin_answers() {
    let (mut rest, mut mcp) = (World::new().await, World::new().await);
    let mut walked: BTreeMap<(String, String), BTreeSet<bool>> = BTreeMap::new();
    for step in steps() {
        let name = format!("{} {}", step.tool, step.arguments);
        let answer = rest.rest(&step).await;
        let called = mcp.mcp(&step).await;
        assert_eq!(answer.status, step.status, "{name}: {}", answer.text());
        let file = answer.header("content-disposition").map(str::to_owned);
        let twin = match (answer.status, file) {
            (204, _) => json!({ "deleted": true }),
            (_, Some(file)) => rest.named(&step, &answer, &file),
            _ => answer.json(),
        };
        let mut document = called.document.clone();
        if step.status == 200 && step.arguments["action"] == "export" {
            // How to fetch it is for agents alone.
            let note = document.as_object_mut().unwrap().remove("note");
            assert!(
                note.unwrap()
                    .as_str()
                    .unwrap()
                    .contains("Authorization: Bearer")
            );
        }
        let (twin_is, tool_is) = (rest.comparable(&twin), mcp.comparable(&document));
        assert_eq!(called.refused, step.status >= 400, "{name}: {tool_is}");
        assert_eq!(tool_is, twin_is, "{name}");
        rest.keep(&step, &twin);
        mcp.keep(&step, &called.document);
        let action = step.arguments["action"].as_str().unwrap_or_default();
        let seen = walked.entry((step.tool.to_owned(), action.to_owned()));
        seen.or_default().insert(called.refused);
    }
    // Each action that is listed was walked, with an answer that it gives and one with which it refuses.
    for tool in listing::tools(&Client::anonymous(&mcp.server)).await {
        let name = tool["name"].as_str().unwrap().to_owned();
        let actions = tool["inputSchema"]["properties"]["action"]["enum"].clone();
        let actions = match actions {
            Value::Array(actions) => actions,
            _ => vec![json!("")],
        };
        for action in actions {
            let key = (name.clone(), action.as_str().unwrap().to_owned());
            let seen = walked.remove(&key).unwrap_or_default();
            assert!(seen.contains(&false), "{key:?} has no twin that succeeds");
            assert!(seen.contains(&true), "{key:?} has no twin that refuses");
        }
    }
    assert!(walked.is_empty(), "{walked:?} is not listed");
}

#[tokio::test]
async fn a_null_clears_the_list_of_providers_and_elsewhere_is_an_absence() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let client = Client::of(&server, &owner.credential);
    let project = owner.project(&server, "House").await;
    let clear = json!({ "action": "update", "project_id": project, "allowed_providers": null });
    let cleared = client.done("manage_project", clear).await;
    assert_eq!(cleared["allowed_providers"], Value::Null);
    let nothing = json!({ "action": "update", "project_id": project, "name": null });
    client
        .refused("manage_project", nothing, "nothing_to_update")
        .await;
    let body = json!({ "allowed_providers": null });
    let answer = owner
        .send(&server, Method::PATCH, &format!("/{project}"), &body)
        .await;
    answer.problem(400, "nothing_to_update");
}
