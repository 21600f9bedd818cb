//! Requests that the client sends: all of them, so that a test holds them against the description of the API.

use http::Method;
use serde_json::Value;

/// A kind of request.
#[derive(Debug)]
pub struct Call {
    /// Method of the request.
    pub method: Method,
    /// Path of the request, as the description has it.
    pub path: &'static str,
    /// The parameters of the query that the client may send.
    pub query: &'static [&'static str],
    /// The members of the body that the client may send; those of a list's entries as `list.member`.
    pub body: &'static [&'static str],
    /// Whether it makes something, and takes a key under which its answer is kept.
    pub creates: bool,
    /// Whether sending it again does no harm.
    pub repeatable: bool,
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident: $method:ident $path:literal [$($query:literal)*] {$($body:literal)*} $($kind:ident)?;)+) => {
        $($(#[$doc])* pub static $name: Call = Call {
            method: Method::$method,
            path: $path,
            query: &[$($query),*],
            body: &[$($body),*],
            creates: calls!(@creates $($kind)?),
            repeatable: calls!(@repeatable $method $($kind)?),
        };)+

        /// Every kind of request.
        pub static ALL: &[&Call] = &[$(&$name),+];
    };
    (@creates creates) => { true };
    (@creates $($other:ident)?) => { false };
    (@repeatable POST once) => { false };
    (@repeatable $($other:ident)+) => { true };
}

calls! {
    /// Publishes a quick share.
    DEPLOY: POST "/api/v1/deploy" [] {"content" "type" "name" "title" "expires_in" "one_time" "password"} creates;
    /// Deletes a quick share.
    DELETE_SHARE: DELETE "/api/v1/deploy/{id}" [] {};
    /// Moves a quick share into a project.
    CLAIM: POST "/api/v1/projects/{id}/frontends/claim" [] {"id" "delete_token"} once;
    /// Lists projects.
    PROJECTS: GET "/api/v1/projects" ["workspace"] {};
    /// Makes a project.
    CREATE_PROJECT: POST "/api/v1/projects" [] {"name" "description" "ttl_seconds" "workspace"} creates;
    /// Reads a project.
    PROJECT: GET "/api/v1/projects/{id}" [] {};
    /// Changes a project.
    UPDATE_PROJECT: PATCH "/api/v1/projects/{id}" [] {"name" "description" "home"};
    /// Deletes a project.
    DELETE_PROJECT: DELETE "/api/v1/projects/{id}" [] {};
    /// Lists frontends.
    FRONTENDS: GET "/api/v1/projects/{id}/frontends" [] {};
    /// Makes a frontend.
    CREATE_FRONTEND: POST "/api/v1/projects/{id}/frontends" [] {"type" "content" "requested_slug" "title"} creates;
    /// Reads a frontend.
    FRONTEND: GET "/api/v1/projects/{id}/frontends/{target}" [] {};
    /// Deletes a frontend.
    DELETE_FRONTEND: DELETE "/api/v1/projects/{id}/frontends/{target}" [] {};
    /// Reads a source.
    CONTENT: GET "/api/v1/projects/{id}/frontends/{target}/content" ["revision_id"] {};
    /// Lists revisions.
    REVISIONS: GET "/api/v1/projects/{id}/frontends/{target}/revisions" ["limit" "cursor"] {};
    /// Makes a draft.
    CREATE_REVISION: POST "/api/v1/projects/{id}/frontends/{target}/revisions" [] {"base_revision_id" "content" "title" "message"} creates;
    /// Reads a revision.
    REVISION: GET "/api/v1/projects/{id}/frontends/{target}/revisions/{revision_id}" [] {};
    /// Makes a draft live.
    PROMOTE: POST "/api/v1/projects/{id}/frontends/{target}/promote" [] {"revision_id" "expected_active_revision_id" "message"} once;
    /// Makes live what was live before.
    ROLLBACK: POST "/api/v1/projects/{id}/frontends/{target}/rollback" [] {"revision_id" "expected_active_revision_id" "message"} once;
    /// Lists releases.
    RELEASES: GET "/api/v1/projects/{id}/frontends/{target}/releases" [] {};
    /// Reads a backend.
    BACKEND: GET "/api/v1/projects/{id}/backend" [] {};
    /// Makes a backend.
    CREATE_BACKEND: POST "/api/v1/projects/{id}/backend" [] {"ddl" "realtime"} creates;
    /// Migrates a backend, or switches its rooms or its tools.
    UPDATE_BACKEND: PATCH "/api/v1/projects/{id}/backend" ["dry_run"] {"ddl" "note" "realtime" "agents"};
    /// Deletes a backend.
    DELETE_BACKEND: DELETE "/api/v1/projects/{id}/backend" [] {};
    /// Defines actions.
    DEFINE_ACTIONS: PUT "/api/v1/projects/{id}/backend/actions" ["dry_run"] {"actions" "actions.name" "actions.sql" "actions.note"};
    /// Lists moments.
    HISTORY: GET "/api/v1/projects/{id}/backend/history" ["limit" "before"] {};
    /// Makes the rows what they were.
    RESTORE: POST "/api/v1/projects/{id}/backend/restore" [] {"at"} once;
    /// Copies the database.
    EXPORT: GET "/api/v1/projects/{id}/backend/export" [] {};
    /// Calls an action.
    OP: POST "/{slug}/api/op" [] {"action" "params"} once;
    /// Runs the owner's SQL.
    QUERY: POST "/{slug}/api/query" [] {"sql" "params"} once;
    /// Describes the API.
    DESCRIPTION: GET "/api/v1/openapi.json" [] {};
}

/// Lists the parts of a request that a server does not know, by its own description: the operation, or some of these
/// parameters and members.
#[must_use]
pub fn unknown(description: &Value, call: &Call, query: &[&str], body: &[&str]) -> Vec<String> {
    let Call { method, path, .. } = call;
    let operation = &description["paths"][path][method.as_str().to_lowercase()];
    if operation.is_null() {
        return vec![format!("`{method} {path}`")];
    }
    let parameters = operation["parameters"].as_array();
    let parameters = |name: &str| {
        let mut known = parameters.into_iter().flatten();
        known.any(|known| known["in"] == "query" && known["name"] == name)
    };
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let query = query.iter().filter(|name| !parameters(name));
    let body = body.iter().filter(|path| !has(description, schema, path));
    let of = |name: &&str| format!("`{name}` of `{method} {path}`");
    query.chain(body).map(of).collect()
}

/// Whether a schema has a member, through references, choices and lists.
fn has(description: &Value, schema: &Value, path: &str) -> bool {
    if let Some(reference) = schema["$ref"].as_str() {
        let place = reference.trim_start_matches('#');
        return description
            .pointer(place)
            .is_some_and(|schema| has(description, schema, path));
    }
    let choices = ["oneOf", "anyOf", "allOf"].into_iter();
    let mut choices = choices.filter_map(|kind| schema[kind].as_array()).flatten();
    if choices.any(|choice| has(description, choice, path)) {
        return true;
    }
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    let member = &schema["properties"][name];
    match rest {
        "" => !member.is_null(),
        rest => has(description, &member["items"], rest),
    }
}
