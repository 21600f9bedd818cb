//! Parity: each operation is called by REST and as a tool's action, on two servers that live alike, and answers the same
//! but for the differences that `wire` declares.
//!
//! Which operations there are says `host/api/src/operations.rs`; `calls` has calls of each. Beside them, each is called with an
//! argument that it does not take: in a place that is not there, in one that is another's, and in its own.

mod calls;
mod rest_mapping;
mod server_pair;

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};
use svc_tests::{Answer, TestServer};

use self::calls::CALLS;
use self::rest_mapping::{actions, arguments, differing_operations};
use self::server_pair::ParityServer;
use super::client::{Client, ToolResult};
use super::listing::tools;
use crate::owner::Owner;

/// A call of the table.
struct Call {
    id: &'static str,
    status: u16,
    arguments: Value,
    keep: Vec<&'static str>,
}

fn calls() -> impl Iterator<Item = Call> {
    CALLS.lines().filter(|line| !line.is_empty()).map(|line| {
        let (id, line) = line.split_once(' ').unwrap();
        let (status, line) = line.split_once(' ').unwrap();
        let end = line.rfind('}').unwrap() + 1;
        Call {
            id,
            status: status.parse().unwrap(),
            arguments: serde_json::from_str(&line[..end]).unwrap(),
            keep: line[end..].split_whitespace().collect(),
        }
    })
}

/// Two servers, of which one is asked by REST, the other by tools.
struct ParityRun {
    rest: ParityServer,
    tools: ParityServer,
    /// Operations that were called.
    called_operations: BTreeSet<&'static str>,
    /// Operations whose tools have answered otherwise.
    differing_operations: BTreeSet<&'static str>,
}

impl ParityRun {
    /// Calls through both doors; the answers must be equal but for what is declared.
    async fn call(&mut self, call: &Call) {
        let Call { id, arguments, .. } = call;
        let first = self.called_operations.insert(id);
        if first {
            assert!(call.status < 300, "{id}: its first call succeeds");
            self.probe(call).await;
        }
        let keyed = first && self.rest.routes[*id].keyed;
        let answer = self
            .rest
            .call_rest_with_key(id, arguments, keyed.then_some(*id))
            .await;
        let called = self.tools.call_tool(id, arguments).await;
        let name = format!("{id} {arguments}");
        assert_eq!(answer.status, call.status, "{name}: {}", answer.text());
        if keyed {
            let again = self.rest.call_rest_with_key(id, arguments, Some(id)).await;
            assert_eq!(again.header("idempotency-replayed"), Some("true"), "{name}");
            assert_eq!((again.status, &again.body), (answer.status, &answer.body));
        }
        if (*id, answer.status) == ("add_domain", 201) {
            self.rest.prove_domain(&answer.json());
            self.tools.prove_domain(&called.document);
        }
        let filled = self.rest.substitute_values(arguments);
        let expected = self.rest.expected((id, &filled), &answer, &called.document);
        let expected = expected.await;
        if answer.status < 300
            && serde_json::from_slice(&answer.body).ok() != Some(expected.clone())
        {
            self.differing_operations.insert(id);
        }
        self.compare(&name, &answer, &expected, &called);
        for wanted in &call.keep {
            self.rest.remember_value(wanted, &expected);
            self.tools.remember_value(wanted, &called.document);
        }
    }

    fn compare(&mut self, name: &str, answer: &Answer, expected: &Value, called: &ToolResult) {
        let expected = self.rest.normalize(expected);
        let document = self.tools.normalize(&called.document);
        assert_eq!(called.refused, answer.status >= 400, "{name}: {document}");
        assert_eq!(document, expected, "{name}");
    }

    /// Calls with an argument too many, which is told last: whether something is there, and whose, comes first.
    async fn probe(&mut self, call: &Call) {
        let (id, path) = (call.id, self.rest.routes[call.id].path.clone());
        let mut places = Vec::new();
        if path.starts_with("/api/v1/projects/{id}") {
            // Gone is what a deletion wants.
            let gone = if id == "delete_project" { 204 } else { 404 };
            places.extend([
                ("project_id", "$nobody", gone),
                ("project_id", "$free", 403),
            ]);
        }
        if path.starts_with("/api/v1/workspaces/{id}") {
            places.extend([("workspace", "nowhere", 404), ("workspace", "zeta", 403)]);
        }
        if path.contains("{target}") && id != "delete_frontend" {
            places.push(("slug", "nowhere", 404));
        }
        if path.contains("/backend") && !["create_backend", "delete_backend"].contains(&id) {
            places.push(("project_id", "$bare", 404));
        }
        let mut arguments = call.arguments.clone();
        arguments["nonsense"] = "1".into();
        for (argument, value, status) in places {
            let mut elsewhere = arguments.clone();
            elsewhere[argument] = value.into();
            let answer = self.rest.call_rest(id, &elsewhere).await;
            let called = self.tools.call_tool(id, &elsewhere).await;
            let name = format!("{id} {elsewhere}");
            assert_eq!(answer.status, status, "{name}: {}", answer.text());
            let filled = self.rest.substitute_values(&elsewhere);
            let expected = self.rest.expected((id, &filled), &answer, &called.document);
            let expected = expected.await;
            self.compare(&name, &answer, &expected, &called);
        }
        let answer = self.rest.call_rest(id, &arguments).await;
        let called = self.tools.call_tool(id, &arguments).await;
        for problem in [answer.problem(400, "invalid_request"), called.document] {
            assert_eq!(problem["code"], "invalid_request", "{id}: {problem}");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains("`nonsense`"), "{id}: {problem}");
        }
    }
}

#[tokio::test]
async fn every_operation_answers_alike_through_both_doors() {
    let (rest, tools) = (ParityServer::new().await, ParityServer::new().await);
    let mut walk = ParityRun {
        rest,
        tools,
        called_operations: BTreeSet::new(),
        differing_operations: BTreeSet::new(),
    };
    for call in calls() {
        walk.call(&call).await;
    }
    let all: BTreeSet<_> = actions().into_keys().collect();
    assert_eq!(walk.called_operations, all, "each operation has its row");
    assert_eq!(
        walk.differing_operations,
        differing_operations(),
        "each difference is there"
    );
}

#[tokio::test]
async fn tools_take_what_rest_takes() {
    let world = ParityServer::new().await;
    let mut expected = arguments(&world.routes);
    for tool in tools(&Client::anonymous(&world.server)).await {
        let schema = tool["inputSchema"]["properties"].as_object().unwrap();
        let offered: BTreeSet<_> = schema.keys().cloned().collect();
        let expected = expected.remove(tool["name"].as_str().unwrap());
        assert_eq!(Some(offered), expected, "{}", tool["name"]);
    }
    assert!(expected.is_empty(), "{expected:?}");
}

#[tokio::test]
async fn a_null_clears_the_list_of_providers_and_elsewhere_is_an_absence() {
    let server = TestServer::start().await;
    let owner = Owner::new(&server, "acme").await;
    let client = Client::with_credential(&server, &owner.credential);
    let project = owner.project(&server, "House").await;
    let clear = json!({ "action": "update", "project_id": project, "allowed_providers": null });
    let cleared = client.call_ok("manage_project", clear).await;
    assert_eq!(cleared["allowed_providers"], Value::Null);
    let nothing = json!({ "action": "update", "project_id": project, "name": null });
    client
        .call_refused("manage_project", nothing, "nothing_to_update")
        .await;
    let body = json!({ "allowed_providers": null });
    let answer = owner
        .send(&server, Method::PATCH, &format!("/{project}"), &body)
        .await;
    answer.problem(400, "nothing_to_update");
}
