//! Links of the description: the operations that can follow an answer, with the sources of their parameters.

use serde_json::{Map, Value, json};

/// Names of parameters or members, each with the runtime expression of its value.
type RuntimeExpressions = &'static [(&'static str, &'static str)];

/// Link from an answer of an operation to others.
struct OperationLink {
    /// Operation and status of the answer.
    from: (&'static str, &'static str),
    /// Ids of the target operations.
    to: &'static [&'static str],
    /// Sources of the parameters.
    parameters: RuntimeExpressions,
    /// Sources of the body's members.
    body: RuntimeExpressions,
}

const ID_FROM_BODY: (&str, &str) = ("id", "$response.body#/id");
const SAME_ID: (&str, &str) = ("id", "$request.path.id");
const SAME_TARGET: (&str, &str) = ("target", "$request.path.target");
const SLUG_FROM_BODY: (&str, &str) = ("slug", "$response.body#/slug");
const REVISION_ID_FROM_BODY: (&str, &str) = ("revision_id", "$response.body#/revision/revision_id");

const LINKS: &[OperationLink] = &[
    OperationLink {
        from: ("deploy", "201"),
        to: &["page", "raw", "unlock", "reveal"],
        parameters: &[SLUG_FROM_BODY],
        body: &[],
    },
    OperationLink {
        from: ("deploy", "201"),
        to: &["report"],
        parameters: &[],
        body: &[SLUG_FROM_BODY],
    },
    OperationLink {
        from: ("release_project", "200"),
        to: &["get_project", "get_backend", "list_frontends"],
        parameters: &[SAME_ID],
        body: &[],
    },
    OperationLink {
        from: ("create_project", "201"),
        to: &[
            "get_project",
            "update_project",
            "release_project",
            "delete_project",
            "create_frontend",
            "list_frontends",
            "create_backend",
            "add_domain",
            "list_domains",
        ],
        parameters: &[ID_FROM_BODY],
        body: &[],
    },
    OperationLink {
        from: ("list_projects", "200"),
        to: &["get_project", "create_frontend", "create_backend"],
        parameters: &[("id", "$response.body#/projects/0/id")],
        body: &[],
    },
    OperationLink {
        from: ("add_domain", "201"),
        to: &[
            "get_domain",
            "update_domain",
            "verify_domain",
            "remove_domain",
        ],
        parameters: &[SAME_ID, ("name", "$response.body#/name")],
        body: &[],
    },
    OperationLink {
        from: ("create_backend", "201"),
        to: &[
            "get_backend",
            "update_backend",
            "delete_backend",
            "define_actions",
            "list_backend_history",
            "export_backend",
            "create_frontend",
        ],
        parameters: &[SAME_ID],
        body: &[],
    },
    OperationLink {
        from: ("list_backend_history", "200"),
        to: &["restore_backend"],
        parameters: &[SAME_ID],
        body: &[("at", "$response.body#/moments/0/at")],
    },
    OperationLink {
        from: ("create_frontend", "201"),
        to: &[
            "get_frontend",
            "republish_frontend",
            "delete_frontend",
            "get_content",
            "list_revisions",
            "list_releases",
        ],
        parameters: &[SAME_ID, ("target", "$response.body#/slug")],
        body: &[],
    },
    OperationLink {
        from: ("create_frontend", "201"),
        to: &["page", "raw", "call_action", "run_query", "get_schema"],
        parameters: &[SLUG_FROM_BODY],
        body: &[],
    },
    OperationLink {
        from: ("list_revisions", "200"),
        to: &["create_revision"],
        parameters: &[SAME_ID, SAME_TARGET],
        body: &[("base_revision_id", "$response.body#/active_revision_id")],
    },
    OperationLink {
        from: ("list_revisions", "200"),
        to: &["get_revision", "get_content"],
        parameters: &[
            SAME_ID,
            SAME_TARGET,
            ("revision_id", "$response.body#/active_revision_id"),
        ],
        body: &[],
    },
    OperationLink {
        from: ("create_revision", "200"),
        to: &["get_revision", "get_content"],
        parameters: &[SAME_ID, SAME_TARGET, REVISION_ID_FROM_BODY],
        body: &[],
    },
    OperationLink {
        from: ("create_revision", "200"),
        to: &["promote_revision"],
        parameters: &[SAME_ID, SAME_TARGET],
        body: &[
            REVISION_ID_FROM_BODY,
            (
                "expected_active_revision_id",
                "$request.body#/base_revision_id",
            ),
        ],
    },
    OperationLink {
        from: ("promote_revision", "200"),
        to: &["rollback_revision"],
        parameters: &[SAME_ID, SAME_TARGET],
        body: &[
            ("revision_id", "$request.body#/expected_active_revision_id"),
            (
                "expected_active_revision_id",
                "$response.body#/revision/revision_id",
            ),
        ],
    },
    OperationLink {
        from: ("promote_revision", "200"),
        to: &["preview_revision", "preview_with_slash"],
        parameters: &[
            ("deployment_id", "$response.body#/frontend/id"),
            REVISION_ID_FROM_BODY,
        ],
        body: &[],
    },
];

/// Adds the links to an operation's answers.
pub(super) fn add_links(operation: &mut Map<String, Value>) {
    let id = operation["operationId"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    for found in LINKS.iter().filter(|found| found.from.0 == id) {
        let links = &mut operation["responses"][found.from.1]["links"];
        for to in found.to {
            let mut link = json!({ "operationId": to });
            if !found.parameters.is_empty() {
                link["parameters"] = to_json_object(found.parameters);
            }
            if !found.body.is_empty() {
                link["requestBody"] = to_json_object(found.body);
            }
            links[to] = link;
        }
    }
}

fn to_json_object(values: RuntimeExpressions) -> Value {
    let members = values.iter();
    members
        .map(|(name, place)| ((*name).to_owned(), Value::from(*place)))
        .collect::<Map<_, _>>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::examples;

    #[test]
    fn links_begin_at_operations_that_answer_something() {
        let examples = examples::all_examples("https://svc.example");
        for link in LINKS {
            assert!(examples.contains_key(link.from.0), "{}", link.from.0);
        }
    }
}
