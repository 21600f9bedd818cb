//! Places of requests among the nodes of several: every route has one, and an operation of owners that of its row.

use std::path::Path;

use http::{Method, Uri};
use svc::access::OperationPlace;
use svc::http::hosts::HostKind;
use svc::operations;
use svc::server::placement::{RequestPlace, placement};
use svc_tests::{ReadAnswer, TestServer};

/// Sources with routes that the description does not have.
const SOURCES: [(&str, HostKind); 4] = [
    ("host/src/router/mod.rs", HostKind::Api),
    ("host/src/router/console.rs", HostKind::Console),
    ("host/backends/src/visitors/dev/routes.rs", HostKind::Api),
    ("host/platform/src/stripe/dev/routes.rs", HostKind::Api),
];

/// Returns a path of a route, with something in place of each parameter.
fn sample(route: &str) -> Uri {
    let filled: Vec<&str> = route
        .split('/')
        .map(|segment| match segment.starts_with('{') {
            true => "x",
            false => segment,
        })
        .collect();
    filled.join("/").parse().unwrap()
}

/// Returns the place of a request to a host, in the words of the list of operations.
fn place_of(host: &HostKind, method: &Method, uri: &Uri) -> Option<OperationPlace> {
    Some(match placement(host, method, uri)? {
        RequestPlace::AnyNode | RequestPlace::Preview { .. } => OperationPlace::AnyNode,
        RequestPlace::Backend(_) => OperationPlace::Backend,
        RequestPlace::Control => OperationPlace::Control,
        RequestPlace::ControlWithBackend => OperationPlace::ControlWithBackend,
    })
}

#[tokio::test]
async fn every_described_route_has_the_place_of_its_operation() {
    let server = TestServer::start().await;
    let document = server.get("/api/v1/openapi.json").answer().await.json();
    let mut compared = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Some(id) = operation["operationId"].as_str() else {
                continue;
            };
            let method: Method = method.to_uppercase().parse().unwrap();
            let place = place_of(&HostKind::Api, &method, &sample(path));
            assert!(place.is_some(), "{method} {path} has no place");
            if let Some(row) = operations::all().iter().find(|row| row.id == id) {
                assert_eq!(place, Some(row.place), "{method} {path}");
                let of_console = place_of(&HostKind::Console, &method, &sample(path));
                assert_eq!(of_console, Some(row.place), "{method} {path}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, operations::all().len());
}

#[test]
fn every_other_route_has_a_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (path, host) in SOURCES {
        let source = std::fs::read_to_string(root.join(path)).unwrap();
        let routes = source.split(".route(").skip(1);
        let literals =
            routes.filter_map(|route| route.trim_start().strip_prefix('"')?.split('"').next());
        let literals: Vec<&str> = literals.collect();
        assert!(!literals.is_empty(), "{path}");
        for route in literals {
            let uri = sample(route);
            for method in [Method::GET, Method::POST] {
                let place = place_of(&host, &method, &uri);
                assert!(place.is_some(), "{path}: {method} {route} has no place");
            }
        }
    }
}
