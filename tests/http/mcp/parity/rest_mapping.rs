//! Differences between the doors: where REST has an argument of a tool, and where a tool answers otherwise.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::{Value, json};
use svc::operations;
use svc_tests::{Answer, ReadAnswer, TestServer};

use super::server_pair::ParityServer;

/// Twins beside the operations of owners: REST's operation, the tool and its action.
const OTHER_TWINS: [(&str, &str, &str); 1] = [("deploy", "deploy_asset", "")];

/// Arguments of tools by the parameters of REST's paths; others have one name.
const ARGUMENTS_OF_PATH_PARAMETERS: [(&str, &[&str]); 3] = [
    ("id", &["project_id", "workspace"]),
    ("target", &["slug", "id"]),
    ("pid", &["price_id"]),
];

/// Arguments that only tools take: which action, and which part of an answer.
const ONLY_OF_TOOLS: [(&str, &[&str]); 6] = [
    ("deploy_asset", &[]),
    ("manage_project", &["action", "called"]),
    ("manage_frontend", &["action", "find", "offset"]),
    ("manage_backend", &["action", "part", "table"]),
    ("manage_payments", &["action"]),
    ("manage_workspace", &["action"]),
];

/// A way in which a tool's answer is not REST's.
#[derive(Clone, Copy, Debug)]
enum AnswerDifference {
    /// REST answers nothing.
    Deleted,
    /// REST answers a file; the tool says where it is and how to fetch it.
    IsElsewhere,
    /// REST answers the bytes of a file; the tool answers a document with them.
    IsInside,
    /// Without a `limit` the tool lists this many, and says how to see more.
    IsShorter(u32),
    /// The tool leaves out the SQL of what the call did not name, and says so.
    LeavesOutSql,
}

/// All differences of answers that are not errors.
const DIFFERENCES: [(&str, AnswerDifference); 14] = [
    ("delete_project", AnswerDifference::Deleted),
    ("forget_visitor", AnswerDifference::Deleted),
    ("remove_domain", AnswerDifference::Deleted),
    ("delete_frontend", AnswerDifference::Deleted),
    ("delete_revision", AnswerDifference::Deleted),
    ("delete_backend", AnswerDifference::Deleted),
    ("delete_action", AnswerDifference::Deleted),
    ("delete_file_of_visitor", AnswerDifference::Deleted),
    ("delete_workspace", AnswerDifference::Deleted),
    ("remove_member", AnswerDifference::Deleted),
    ("export_backend", AnswerDifference::IsElsewhere),
    ("get_file", AnswerDifference::IsInside),
    ("list_revisions", AnswerDifference::IsShorter(5)),
    ("define_actions", AnswerDifference::LeavesOutSql),
];

/// The operations whose tools answer otherwise.
pub(super) fn differing_operations() -> BTreeSet<&'static str> {
    DIFFERENCES.iter().map(|(id, _)| *id).collect()
}

/// The tools' actions by the operations of REST.
pub(super) fn actions() -> BTreeMap<&'static str, (&'static str, &'static str)> {
    let rows = operations::all();
    let listed = rows.iter().filter_map(|row| Some((row.id, row.tool?)));
    let others = OTHER_TWINS.map(|(id, tool, action)| (id, (tool, action)));
    listed.chain(others).collect()
}

/// A route, as the description has it.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: String,
    /// Parameters of the query.
    query: BTreeSet<String>,
    /// Members of the body.
    body: BTreeSet<String>,
    /// Whether it takes an `Idempotency-Key`.
    pub(super) keyed: bool,
}

/// All routes by their operations.
pub(super) async fn routes(server: &TestServer) -> BTreeMap<String, Route> {
    let document = server.get("/api/v1/openapi.json").answer().await.json();
    let mut routes = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let all = operation["parameters"].as_array().into_iter().flatten();
            let named = |place: &str| {
                let there = all.clone().filter(|parameter| parameter["in"] == place);
                let names = there.map(|parameter| parameter["name"].as_str().unwrap().to_owned());
                names.collect::<BTreeSet<_>>()
            };
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let resolve = |schema: &Value| match schema["$ref"].as_str() {
                Some(name) => document.pointer(&name[1..]).unwrap().clone(),
                None => schema.clone(),
            };
            let schema = resolve(schema);
            // Of a page or a site.
            let kinds: Vec<Value> = match schema["oneOf"].as_array() {
                Some(kinds) => kinds.iter().map(resolve).collect(),
                None => vec![schema],
            };
            let members = kinds
                .iter()
                .filter_map(|kind| kind["properties"].as_object());
            let members = members.flatten();
            let route = Route {
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                query: named("query"),
                body: members.map(|(name, _)| name.clone()).collect(),
                keyed: named("header").contains("Idempotency-Key"),
            };
            let id = operation["operationId"].as_str().unwrap();
            routes.insert(id.to_owned(), route);
        }
    }
    routes
}

impl Route {
    /// REST's path and body for a tool's arguments.
    pub(super) fn rest_request(&self, id: &str, arguments: &Value) -> (String, Value) {
        let mut left = arguments.as_object().unwrap().clone();
        let mut path = self.path.clone();
        while let Some((before, after)) = path.split_once('{') {
            let (parameter, after) = after.split_once('}').unwrap();
            let names = argument_names(parameter);
            let value = names.iter().find_map(|name| left.remove(*name));
            let value = value.unwrap_or_else(|| panic!("{id}: no {parameter} in {arguments}"));
            path = format!("{before}{}{after}", value.as_str().unwrap());
        }
        if let Some(slug) = left.remove("slug").filter(|_| id == "deploy") {
            left.insert("name".to_owned(), slug);
        }
        let bodiless = matches!(self.method, Method::GET | Method::DELETE);
        let (query, body): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|(name, _)| bodiless || self.query.contains(name));
        for (at, (name, value)) in query.iter().enumerate() {
            let text = value.to_string();
            let mark = if at == 0 { '?' } else { '&' };
            path = format!("{path}{mark}{name}={}", text.trim_matches('"'));
        }
        (path, Value::Object(body.into_iter().collect()))
    }

    /// The arguments that a tool has for it.
    fn arguments(&self, id: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for parameter in self.path.split('{').skip(1) {
            let parameter = parameter.split('}').next().unwrap();
            let ours = argument_names(parameter);
            let ours = match (parameter, self.path.contains("/workspaces/")) {
                ("id", true) => ours[1],
                _ => ours[0],
            };
            names.insert(ours.to_owned());
        }
        for name in self.query.iter().chain(&self.body) {
            match (id, name.as_str()) {
                ("deploy", "name") => names.insert("slug".to_owned()),
                (_, name) => names.insert(name.to_owned()),
            };
        }
        names
    }
}

/// The names of a path's parameter as an argument.
fn argument_names(parameter: &str) -> Vec<&str> {
    let other = ARGUMENTS_OF_PATH_PARAMETERS
        .iter()
        .find(|(name, _)| *name == parameter);
    other.map_or(vec![parameter], |(_, names)| names.to_vec())
}

/// The arguments that each tool must have.
pub(super) fn arguments(routes: &BTreeMap<String, Route>) -> BTreeMap<&str, BTreeSet<String>> {
    let mut tools: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (tool, own) in ONLY_OF_TOOLS {
        let own = own.iter().map(|name| (*name).to_owned());
        tools.entry(tool).or_default().extend(own);
    }
    for (id, (tool, _)) in actions() {
        let known = tools.entry(tool).or_default();
        known.extend(routes[id].arguments(id));
    }
    tools
}

impl ParityServer {
    /// Answer that the tool must give, where REST gives this one; a note of the tool's is as `told`.
    pub(super) async fn expected(
        &self,
        call: (&str, &Value),
        answer: &Answer,
        told: &Value,
    ) -> Value {
        let (id, arguments) = call;
        let refused = answer.status >= 400;
        let known = DIFFERENCES
            .iter()
            .find(|(known, _)| *known == id && !refused);
        let note = |mut document: Value, says: &str| {
            let note = told["note"].as_str().unwrap_or_default();
            assert!(note.contains(says), "{id}: {told}");
            document["note"] = note.into();
            document
        };
        match known.map(|(_, differs)| *differs) {
            Some(AnswerDifference::Deleted) => json!({ "deleted": true }),
            Some(AnswerDifference::IsElsewhere) => {
                note(self.file_location(call, answer), "Authorization: Bearer")
            }
            Some(AnswerDifference::IsInside) => {
                let digest = answer.header("etag").unwrap().trim_matches('"');
                let mut document = told.clone();
                document["content"] = answer.text().into();
                document["path"] = arguments["path"].clone();
                document["sha256"] = digest.into();
                document["size"] = answer.body.len().into();
                document
            }
            Some(AnswerDifference::IsShorter(limit)) if arguments["limit"].is_null() => {
                let mut with = arguments.clone();
                with["limit"] = limit.into();
                let shorter = self.call_rest(id, &with).await.expect(200).json();
                match shorter["next_cursor"].is_null() {
                    true => shorter,
                    false => note(shorter, "`cursor`"),
                }
            }
            Some(AnswerDifference::LeavesOutSql) => {
                let mut document = answer.json();
                let named = arguments["actions"].as_array().unwrap();
                let mut left_out = false;
                let actions = document.get_mut("actions").and_then(Value::as_array_mut);
                for action in actions.into_iter().flatten() {
                    if !named.iter().any(|one| one["name"] == action["name"]) {
                        left_out |= action.as_object_mut().unwrap().remove("sql").is_some();
                    }
                }
                match left_out {
                    true => note(document, "`sql` of 1 action "),
                    false => document,
                }
            }
            _ => answer.json(),
        }
    }

    /// Where a file is that REST answers.
    fn file_location(&self, (id, arguments): (&str, &Value), answer: &Answer) -> Value {
        let (path, _) = self.routes[id].rest_request(id, arguments);
        let disposition = answer.header("content-disposition").unwrap();
        let name = disposition.strip_prefix("attachment; filename=").unwrap();
        json!({
            "url": format!("http://localhost:{}{path}", self.server.address().port()),
            "content_type": answer.header("content-type").unwrap(),
            "file_name": name.trim_matches('"'),
        })
    }
}
