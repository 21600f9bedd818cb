//! Places of requests among the nodes of several: no route is made where `tests/http/placement.rs` does not look for its place.

use super::*;

/// Files that make routes by a path, besides those of the description. The last one has the operators' listener, which is each node's own.
const ROUTERS: [&str; 5] = [
    "host/backends/src/visitors/dev/routes.rs",
    "host/platform/src/stripe/dev/routes.rs",
    "host/src/router/console.rs",
    "host/src/router/mod.rs",
    "host/src/server/connections.rs",
];

fn makes_routes(code: &str) -> bool {
    code.contains(".route(") || code.contains(".route_service(")
}

#[test]
fn routes_are_made_where_their_places_are_looked_for() {
    let sources = sources(".rs").into_iter();
    let found = sources.filter(|(path, text)| {
        path_in_package(path).is_some() && !is_test(path) && makes_routes(&code(text))
    });
    let found: Vec<String> = found.map(|(path, _)| path).collect();
    assert_eq!(
        found, ROUTERS,
        "a file that makes routes is listed here, and read by tests/http/placement.rs"
    );
    assert!(makes_routes("Router::new().route(\"/x\", get(x))"));
    assert!(!makes_routes("self.routes(x)"));
}
