//! The server's endpoints that the client uses. A test compares them with the API description.

use http::Method;
use serde_json::Value;

use super::responses::{self, ResponseConstraints};

/// Entries of a list that are asked for at once: as many as the server gives.
pub(super) const MAX_PAGE_ENTRIES: u32 = 200;
/// The most schemas to visit for one member, since references may form a circle.
const MAX_SCHEMAS: usize = 10_000;
/// The longest reference that is followed, in bytes: each visit reads it.
const MAX_REFERENCE: usize = 200;

/// An endpoint of the server, with what the client may send to it.
#[derive(Debug)]
pub struct Endpoint {
    /// Method of the request.
    pub method: Method,
    /// Path with parameters, as in the API description.
    pub path: &'static str,
    /// Query parameters that the client may send.
    pub query: &'static [&'static str],
    /// Body members that the client may send; `list.member` for members of a list's entries.
    pub body: &'static [&'static str],
    /// Whether the endpoint creates something, and takes an idempotency key.
    pub creates: bool,
    /// Whether a repeated request does no harm.
    pub repeatable: bool,
    /// Rules for the answer.
    pub(super) response_rules: ResponseConstraints,
}

macro_rules! endpoints {
    ($($(#[$doc:meta])* $name:ident: $method:ident $path:literal [$($query:literal)*] {$($body:literal)*} $($kind:ident)? => $answer:ident;)+) => {
        $($(#[$doc])* pub static $name: Endpoint = Endpoint {
            method: Method::$method,
            path: $path,
            query: &[$($query),*],
            body: &[$($body),*],
            creates: endpoints!(@creates $($kind)?),
            repeatable: endpoints!(@repeatable $method $($kind)?),
            response_rules: responses::$answer,
        };)+

        /// All endpoints that the client uses.
        pub static ALL: &[&Endpoint] = &[$(&$name),+];
    };
    (@creates creates) => { true };
    (@creates $($other:ident)?) => { false };
    (@repeatable POST once) => { false };
    (@repeatable PUT once) => { false };
    (@repeatable $($other:ident)+) => { true };
}

endpoints! {
    /// Publishes a quick share.
    DEPLOY: POST "/api/v1/deploy" [] {"content" "type" "name" "title" "expires_in" "one_time" "password" "files" "options"} creates => SHARE;
    /// Publishes a file as a quick share.
    DEPLOY_FILE: PUT "/api/v1/deploy/{id}" ["name" "title" "expires_in"] {} once => SHARE;
    /// Deletes a quick share.
    DELETE_SHARE: DELETE "/api/v1/deploy/{id}" [] {} => NOTHING;
    /// Moves a quick share into a project.
    CLAIM: POST "/api/v1/projects/{id}/frontends/claim" [] {"id" "delete_token"} once => FRONTEND;
    /// Lists projects.
    PROJECTS: GET "/api/v1/projects" ["workspace"] {} => PROJECTS;
    /// Makes a project.
    CREATE_PROJECT: POST "/api/v1/projects" [] {"name" "description" "ttl_seconds" "workspace"} creates => PROJECT;
    /// Reads a project.
    PROJECT: GET "/api/v1/projects/{id}" [] {} => PROJECT;
    /// Changes a project.
    UPDATE_PROJECT: PATCH "/api/v1/projects/{id}" [] {"name" "description" "home"} => PROJECT;
    /// Deletes a project.
    DELETE_PROJECT: DELETE "/api/v1/projects/{id}" [] {} => NOTHING;
    /// Counts what pages did.
    STATS: GET "/api/v1/projects/{id}/stats" ["from" "to" "step"] {} => STATS;
    /// Lists or follows the latest requests of pages.
    LOG: GET "/api/v1/projects/{id}/log" ["limit" "action"] {} => LOG;
    /// Lists frontends.
    FRONTENDS: GET "/api/v1/projects/{id}/frontends" [] {} => FRONTENDS;
    /// Makes a frontend.
    CREATE_FRONTEND: POST "/api/v1/projects/{id}/frontends" [] {"type" "content" "files" "options" "requested_slug" "title"} creates => FRONTEND;
    /// Reads a frontend.
    FRONTEND: GET "/api/v1/projects/{id}/frontends/{target}" [] {} => FRONTEND;
    /// Deletes a frontend.
    DELETE_FRONTEND: DELETE "/api/v1/projects/{id}/frontends/{target}" [] {} => NOTHING;
    /// Reads a source.
    CONTENT: GET "/api/v1/projects/{id}/frontends/{target}/content" ["revision_id" "known_content_sha256"] {} => SOURCE;
    /// Reads a file of a site.
    FILE: GET "/api/v1/projects/{id}/frontends/{target}/files/{path}" ["revision_id"] {} => NOTHING;
    /// Sends a file ahead of a publication.
    PUT_BLOB: PUT "/api/v1/projects/{id}/blobs/{sha256}" [] {} => NOTHING;
    /// Lists revisions.
    REVISIONS: GET "/api/v1/projects/{id}/frontends/{target}/revisions" ["limit" "cursor"] {} => REVISIONS;
    /// Makes a draft.
    CREATE_REVISION: POST "/api/v1/projects/{id}/frontends/{target}/revisions" [] {"base_revision_id" "content" "files" "changes" "options" "title" "message"} creates => DRAFT;
    /// Reads a revision.
    REVISION: GET "/api/v1/projects/{id}/frontends/{target}/revisions/{revision_id}" [] {} => REVISION;
    /// Deletes a revision.
    DELETE_REVISION: DELETE "/api/v1/projects/{id}/frontends/{target}/revisions/{revision_id}" [] {} => NOTHING;
    /// Makes a draft live.
    PROMOTE: POST "/api/v1/projects/{id}/frontends/{target}/promote" [] {"revision_id" "expected_active_revision_id" "message" "forget"} once => RELEASE;
    /// Makes an earlier revision live again.
    ROLLBACK: POST "/api/v1/projects/{id}/frontends/{target}/rollback" [] {"revision_id" "expected_active_revision_id" "message" "forget"} once => RELEASE;
    /// Lists releases.
    RELEASES: GET "/api/v1/projects/{id}/frontends/{target}/releases" [] {} => RELEASES;
    /// Releases several parts of a project at once.
    RELEASE: POST "/api/v1/projects/{id}/release" [] {"migrations" "migrations.ddl" "migrations.note" "actions" "actions.name" "actions.sql" "actions.note" "actions.defaults" "actions.files" "actions.expected_version" "remove_actions" "remove_actions.name" "remove_actions.expected_version" "pages" "pages.slug" "pages.type" "pages.content" "pages.files" "pages.changes" "pages.options" "pages.title" "pages.expected_active_revision_id" "remove_pages" "remove_pages.slug" "remove_pages.expected_active_revision_id" "home" "message" "dry_run"} creates => RELEASED;
    /// Reads a backend.
    BACKEND: GET "/api/v1/projects/{id}/backend" [] {} => BACKEND;
    /// Makes a backend.
    CREATE_BACKEND: POST "/api/v1/projects/{id}/backend" [] {"ddl" "realtime"} creates => BACKEND;
    /// Migrates a backend, or switches its rooms or its tools.
    UPDATE_BACKEND: PATCH "/api/v1/projects/{id}/backend" ["dry_run"] {"ddl" "note" "realtime" "agents"} => BACKEND;
    /// Deletes a backend.
    DELETE_BACKEND: DELETE "/api/v1/projects/{id}/backend" [] {} => NOTHING;
    /// Defines actions.
    DEFINE_ACTIONS: PUT "/api/v1/projects/{id}/backend/actions" ["dry_run"] {"actions" "actions.name" "actions.sql" "actions.note" "actions.defaults" "actions.files"} => BACKEND;
    /// Lists the versions of an action.
    ACTION_VERSIONS: GET "/api/v1/projects/{id}/backend/actions/{name}/versions" ["limit" "cursor"] {} => ACTION_VERSIONS;
    /// Puts an earlier version of an action back.
    ROLLBACK_ACTION: POST "/api/v1/projects/{id}/backend/actions/{name}/rollback" [] {"version" "expected_version"} once => ACTION;
    /// Deletes an action.
    DELETE_ACTION: DELETE "/api/v1/projects/{id}/backend/actions/{name}" ["expected_version"] {} => NOTHING;
    /// Lists actions, each with the columns of its rows.
    ACTIONS: GET "/api/v1/projects/{id}/backend/actions" [] {} => BACKEND;
    /// Runs the owner's SQL without a page.
    OWNER_QUERY: POST "/api/v1/projects/{id}/backend/query" [] {"sql" "params"} once => ROWS;
    /// Lists moments.
    HISTORY: GET "/api/v1/projects/{id}/backend/history" ["limit" "before"] {} => MOMENTS;
    /// Restores the rows of an earlier moment.
    RESTORE: POST "/api/v1/projects/{id}/backend/restore" [] {"at"} once => RESTORED;
    /// Copies the database.
    EXPORT: GET "/api/v1/projects/{id}/backend/export" [] {} => NOTHING;
    /// Lists visitors' files.
    VISITOR_FILES: GET "/api/v1/projects/{id}/files" ["limit" "cursor"] {} => VISITOR_FILES;
    /// Reads a visitor's file.
    VISITOR_FILE: GET "/api/v1/projects/{id}/files/{file_id}" [] {} => NOTHING;
    /// Deletes a visitor's file.
    DELETE_VISITOR_FILE: DELETE "/api/v1/projects/{id}/files/{file_id}" [] {} => NOTHING;
    /// Calls an action.
    OP: POST "/{slug}/api/op" [] {"action" "params" "as"} once => ROWS;
    /// Runs the owner's SQL.
    QUERY: POST "/{slug}/api/query" [] {"sql" "params"} once => ROWS;
    /// Lists the caller's workspaces.
    WORKSPACES: GET "/api/v1/workspaces" [] {} => WORKSPACES;
    /// Lists who has changed what in a workspace.
    AUDIT: GET "/api/v1/workspaces/{id}/audit" ["limit" "cursor"] {} => AUDIT;
    /// Reads the typings of a page's runtime.
    TYPINGS: GET "/_svc/runtime.d.ts" [] {} => NOTHING;
    /// Lists the catalog of prices.
    CATALOG: GET "/api/v1/projects/{id}/payments/catalog" [] {} => CATALOG;
    /// Adds a price.
    ADD_PRICE: POST "/api/v1/projects/{id}/payments/catalog" [] {"key" "product_name" "description" "label" "amount" "currency" "recurring" "interval" "replaces"} creates => PRICE;
    /// Takes a price off the catalog.
    WITHDRAW_PRICE: DELETE "/api/v1/projects/{id}/payments/catalog/{pid}" [] {} => PRICE;
    /// Lists domains.
    DOMAINS: GET "/api/v1/projects/{id}/domains" [] {} => DOMAINS;
    /// Adds a domain.
    ADD_DOMAIN: POST "/api/v1/projects/{id}/domains" [] {"name" "redirect_to"} => DOMAIN;
    /// Checks a domain.
    VERIFY_DOMAIN: POST "/api/v1/projects/{id}/domains/{name}/verify" [] {} once => DOMAIN;
    /// Removes a domain.
    REMOVE_DOMAIN: DELETE "/api/v1/projects/{id}/domains/{name}" [] {} => NOTHING;
    /// Describes the API.
    DESCRIPTION: GET "/api/v1/openapi.json" [] {} => DESCRIPTION;
}

/// Lists the parts of a request that the server's API description does not have: the endpoint, or some of these parameters and
/// members.
#[must_use]
pub fn unknown_parts(
    description: &Value,
    call: &Endpoint,
    query: &[&str],
    body: &[&str],
) -> Vec<String> {
    let Endpoint { method, path, .. } = call;
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
    let body = body
        .iter()
        .filter(|path| !schema_has(description, schema, path));
    let of = |name: &&str| format!("`{name}` of `{method} {path}`");
    query.chain(body).map(of).collect()
}

/// Whether a schema has a member, through references, choices and lists.
fn schema_has(description: &Value, schema: &Value, path: &str) -> bool {
    let mut open = vec![(schema, path)];
    for _ in 0..MAX_SCHEMAS {
        let Some((schema, path)) = open.pop() else {
            return false;
        };
        if open.len() > MAX_SCHEMAS {
            break;
        }
        if let Some(reference) = schema["$ref"].as_str() {
            if reference.len() > MAX_REFERENCE {
                break;
            }
            let place = reference.trim_start_matches('#');
            open.extend(description.pointer(place).map(|schema| (schema, path)));
        }
        let choices = ["oneOf", "anyOf", "allOf"].into_iter();
        let choices = choices.filter_map(|kind| schema[kind].as_array()).flatten();
        open.extend(choices.take(MAX_SCHEMAS).map(|choice| (choice, path)));
        let (name, rest) = path.split_once('.').unwrap_or((path, ""));
        let member = &schema["properties"][name];
        match rest {
            "" if !member.is_null() => return true,
            "" => {}
            rest => open.push((&member["items"], rest)),
        }
    }
    // If the references form a circle or are too long, or the choices are too many, the member counts as known.
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_description_with_very_many_choices_is_left() {
        let mut choices = vec![json!(0); 2 * MAX_SCHEMAS];
        choices.push(json!({ "$ref": "#/S" }));
        let description = json!({ "S": { "anyOf": choices } });
        assert!(schema_has(&description, &description["S"], "name"));
    }

    #[test]
    fn a_description_with_a_very_long_reference_is_left() {
        for (length, expected) in [(100, false), (1000, true)] {
            let name = "a".repeat(length);
            let schema = json!({ "$ref": format!("#/{name}") });
            let description = json!({ name: {} });
            assert_eq!(
                schema_has(&description, &schema, "name"),
                expected,
                "{length}"
            );
        }
    }

    #[test]
    fn a_description_that_leads_in_circles_is_left() {
        let description = json!({ "a": { "oneOf": [{ "$ref": "#/a" }, { "$ref": "#/a" }] } });
        assert!(schema_has(&description, &json!({ "$ref": "#/a" }), "name"));
        assert!(!schema_has(&description, &json!({ "$ref": "#/b" }), "name"));
    }
}
