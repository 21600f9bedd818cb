//! Attempts on another workspace, by its own names, over REST and as tools.

use http::Method;
use serde_json::{Value, json};

use super::super::WORKSPACES_PATH;
use super::super::roles::WorkspaceFixture;
use super::{PROJECTS, ResourceIds};

/// Requests at one's own address that name what is another's, each with what is answered to who may do such a thing.
pub(super) fn foreign_requests(
    own: &WorkspaceFixture,
    of: &ResourceIds,
    other: &WorkspaceFixture,
    theirs: &ResourceIds,
) -> Vec<(Method, String, Value, u16)> {
    let (get, post, patch) = (Method::GET, Method::POST, Method::PATCH);
    let project = format!("{PROJECTS}/{}", own.project);
    let (workspace, none) = (format!("{WORKSPACES_PATH}/{}", own.workspace), Value::Null);
    let mine = format!("{project}/frontends/{}", own.slug);
    let mut all = Vec::new();
    for target in [other.slug, &theirs.frontend] {
        let at = format!("{project}/frontends/{target}");
        let new = json!({ "content": "# Taken" });
        let draft = json!({ "base_revision_id": theirs.live, "content": "# Taken" });
        let release =
            json!({ "revision_id": theirs.draft, "expected_active_revision_id": theirs.live });
        all.extend([
            (get.clone(), at.clone(), none.clone(), 404),
            (get.clone(), format!("{at}/content"), none.clone(), 404),
            (get.clone(), format!("{at}/revisions"), none.clone(), 404),
            (get.clone(), format!("{at}/releases"), none.clone(), 404),
            (
                get.clone(),
                format!("{at}/revisions/{}", theirs.draft),
                none.clone(),
                404,
            ),
            (Method::PUT, at.clone(), new, 404),
            (post.clone(), format!("{at}/revisions"), draft, 404),
            (post.clone(), format!("{at}/promote"), release.clone(), 404),
            (post.clone(), format!("{at}/rollback"), release, 404),
            (Method::DELETE, at.clone(), none.clone(), 204),
        ]);
    }
    let release = json!({ "revision_id": theirs.draft, "expected_active_revision_id": of.live });
    let draft = json!({ "base_revision_id": theirs.live, "content": "# Taken" });
    let claim =
        json!({ "id": theirs.frontend, "delete_token": format!("svcd_{}", "a".repeat(43)) });
    let (role, key) = (json!({ "role": "viewer" }), &theirs.key);
    all.extend([
        (
            get.clone(),
            format!("{mine}/revisions/{}", theirs.draft),
            none.clone(),
            404,
        ),
        (
            get.clone(),
            format!("{mine}/content?revision_id={}", theirs.draft),
            none.clone(),
            404,
        ),
        (
            post.clone(),
            format!("{mine}/promote"),
            release.clone(),
            404,
        ),
        (post.clone(), format!("{mine}/rollback"), release, 404),
        (post.clone(), format!("{mine}/revisions"), draft, 409),
        (
            post.clone(),
            format!("{project}/frontends/claim"),
            claim,
            404,
        ),
        (
            patch.clone(),
            project.clone(),
            json!({ "home": other.slug }),
            400,
        ),
        (
            Method::DELETE,
            format!("{project}/payments/catalog/{}", theirs.price),
            none.clone(),
            404,
        ),
        (
            Method::DELETE,
            format!("{project}/visitors/{}", theirs.visitor),
            none.clone(),
            204,
        ),
        (
            patch,
            format!("{workspace}/members/{}", theirs.member),
            role,
            404,
        ),
        (
            Method::DELETE,
            format!("{workspace}/members/{}", theirs.member),
            none.clone(),
            404,
        ),
        (Method::DELETE, format!("{workspace}/keys/{key}"), none, 404),
    ]);
    all
}

/// Calls of tools that ask for the same.
pub(super) fn foreign_tool_calls(
    own: &WorkspaceFixture,
    other: &WorkspaceFixture,
    theirs: &ResourceIds,
) -> Vec<(&'static str, Value)> {
    let at = |more: Value| {
        let mut given = json!({ "project_id": own.project });
        given
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        given
    };
    let mut all = Vec::new();
    for target in [
        json!({ "slug": other.slug }),
        json!({ "id": theirs.frontend }),
    ] {
        for more in [
            json!({ "action": "get" }),
            json!({ "action": "content" }),
            json!({ "action": "list_revisions" }),
            json!({ "action": "releases" }),
            json!({ "action": "get_revision", "revision_id": theirs.draft }),
            json!({ "action": "update", "content": "# Taken" }),
            json!({ "action": "create_revision", "base_revision_id": theirs.live, "content": "# Taken" }),
            json!({ "action": "promote", "revision_id": theirs.draft, "expected_active_revision_id": theirs.live }),
            json!({ "action": "rollback", "revision_id": theirs.draft, "expected_active_revision_id": theirs.live }),
            json!({ "action": "delete" }),
        ] {
            let mut given = at(more);
            given
                .as_object_mut()
                .unwrap()
                .extend(target.as_object().unwrap().clone());
            all.push(("manage_frontend", given));
        }
    }
    let member = |action: &str| json!({ "action": action, "workspace": own.workspace, "user_id": theirs.member, "role": "viewer" });
    let mut remove = member("remove_member");
    remove.as_object_mut().unwrap().remove("role");
    all.extend([
        (
            "manage_frontend",
            at(json!({ "action": "content", "slug": own.slug, "revision_id": theirs.draft })),
        ),
        (
            "manage_payments",
            at(json!({ "action": "deactivate_price", "price_id": theirs.price })),
        ),
        (
            "manage_project",
            at(json!({ "action": "forget_visitor", "user_id": theirs.visitor })),
        ),
        ("manage_workspace", member("set_role")),
        ("manage_workspace", remove),
    ]);
    all
}
