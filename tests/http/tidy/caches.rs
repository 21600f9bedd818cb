//! Caches: each that holds rows of the control database follows its changes, and nobody removes anything from one by hand.

use super::*;

/// Marks of state that is kept in memory for longer than a request.
const MARKS: [&str; 5] = [
    "quick_cache",
    "memory_cache",
    "ArcSwap",
    "OnceCell",
    "RwLock",
];

/// Registers a listener to changes.
const REGISTRATION: &str = ".on_change(";

/// Files of the host that keep something in memory. The second part says why it need not follow the rows of the control database;
/// `None` has a listener, without which another machine's changes would not reach it.
const KEPT: [(&str, Option<&str>); 28] = [
    (
        "host/api/src/openapi/parts.rs",
        Some("the description is of the program"),
    ),
    ("host/backends/src/backends/actions.rs", None),
    ("host/backends/src/backends/service.rs", None),
    (
        "host/backends/src/backends/verdicts.rs",
        Some("a verdict is of the text and of the gate, which are its key"),
    ),
    (
        "host/backends/src/realtime/live/listeners.rs",
        Some("connections, which `realtime/service.rs` ends by changes"),
    ),
    ("host/backends/src/realtime/service.rs", None),
    ("host/backends/src/visitors/sessions.rs", None),
    (
        "host/pages/src/deployments/files/visitors/mod.rs",
        Some("what a file's id names never changes, and is read again after a minute"),
    ),
    (
        "host/pages/src/deployments/publication/runtime/mod.rs",
        Some("bytes by their digest, and the program's own scripts"),
    ),
    (
        "host/pages/src/deployments/revisions/preview.rs",
        Some("the row is read before it, and a preview of a revision never changes"),
    ),
    ("host/pages/src/deployments/serving/origins.rs", None),
    ("host/pages/src/deployments/blocked/mod.rs", None),
    ("host/pages/src/deployments/serving/page_cache.rs", None),
    (
        "host/pages/src/deployments/serving/site_files.rs",
        Some(
            "headers of one page, which counts only for as long as the page in memory is that one",
        ),
    ),
    (
        "host/pages/src/landing/mod.rs",
        Some("documents of the program and its settings"),
    ),
    (
        "host/platform/src/access/tokens.rs",
        Some("tokens by their digest, until the issuer's keys change"),
    ),
    (
        "host/platform/src/control/change.rs",
        Some("the listeners themselves"),
    ),
    (
        "host/platform/src/control/errands.rs",
        Some("the way of errands, which is no row"),
    ),
    (
        "host/platform/src/issuers/issuer.rs",
        Some("documents of other servers"),
    ),
    (
        "host/platform/src/projects/domains/dns.rs",
        Some("the way to a resolver, whose answers are not kept"),
    ),
    ("host/platform/src/projects/domains/service.rs", None),
    (
        "host/platform/src/tls/domains.rs",
        Some("what `projects/domains/service.rs` has it follow"),
    ),
    (
        "host/platform/src/tls/served.rs",
        Some("certificates, which are files"),
    ),
    (
        "host/platform/src/workspaces/members/mod.rs",
        Some("a subject's user never changes, and the address is the token's"),
    ),
    ("host/src/cluster/serving_node.rs", None),
    (
        "host/src/console/files.rs",
        Some("files of the program, by their digests"),
    ),
    (
        "host/src/console/mod.rs",
        Some("the document of the program and its settings"),
    ),
    ("host/src/server/mod.rs", None),
];

/// Files of guides: rendered by guests, from the program's own texts.
const GUIDES: &str = "host/src/guides/";

/// Finds the fault of a file, if it has one.
fn fault(path: &str, code: &str, listed: Option<Option<&str>>) -> Option<String> {
    let keeps = MARKS.iter().any(|mark| code.contains(mark));
    let follows = code.contains(REGISTRATION);
    match listed {
        None if keeps || follows => Some(format!("{path} keeps something, and is not listed")),
        Some(None) if !follows => Some(format!("{path} follows no changes")),
        Some(Some(_)) if follows => Some(format!("{path} follows changes, and is said not to")),
        Some(_) if !keeps && !follows => Some(format!("{path} keeps nothing: take it off")),
        // A change is delivered, never made up where a cache is at hand.
        _ if code.contains("(&ControlChange::") => Some(format!("{path} forgets by hand")),
        _ => None,
    }
}

#[test]
fn what_is_kept_in_memory_follows_the_rows() {
    let mut found = Vec::new();
    for (path, text) in sources(".rs") {
        let ours = path_in_package(&path).is_some() && !path.starts_with(GUIDES);
        if !ours || is_test(&path) {
            continue;
        }
        let listed = KEPT.iter().find(|(kept, _)| *kept == path);
        found.extend(fault(&path, &code(&text), listed.map(|(_, why)| *why)));
    }
    for (path, _) in KEPT {
        if !root().join(path).is_file() {
            found.push(format!("{path} is listed and is not there"));
        }
    }
    assert_none(
        &found,
        "a cache of rows registers with the control database when it is made, and is listed; any other says why it need not",
    );
}

#[test]
fn caches_that_follow_nothing_are_found() {
    let cache = "use quick_cache::sync::Cache;";
    let follower = "use quick_cache::sync::Cache; control.on_change(move |change| {});";
    let forgetful = "use std::sync::RwLock; held.follow(&ControlChange::Slug(slug));";
    for (code, listed, faulty) in [
        ("fn plain() {}", None, false),
        (cache, None, true),
        (cache, Some(None), true),
        (cache, Some(Some("no rows")), false),
        (follower, None, true),
        (follower, Some(None), false),
        (follower, Some(Some("no rows")), true),
        ("fn plain() {}", Some(Some("no rows")), true),
        (forgetful, Some(Some("no rows")), true),
        ("held.follow(&ControlChange::Slug(slug));", None, true),
    ] {
        let found = fault("file.rs", code, listed);
        assert_eq!(found.is_some(), faulty, "{code}: {found:?}");
    }
}
