//! Requests of the client, held against our own description of the API.

use svc::client::endpoints;
use svc_tests::{ReadAnswer, TestServer};

#[tokio::test]
async fn everything_that_the_client_sends_is_described() {
    let server = TestServer::start().await;
    let answer = server.get("/api/v1/openapi.json").answer().await;
    let description = answer.expect(200).json();
    let found: Vec<_> = endpoints::ALL
        .iter()
        .flat_map(|call| endpoints::unknown_parts(&description, call, call.query, call.body))
        .collect();
    assert!(found.is_empty(), "not described: {found:?}");
    assert!(endpoints::ALL.len() > 20);
    // The look finds what is not there.
    let wrong = endpoints::unknown_parts(
        &description,
        &endpoints::DEPLOY,
        &["q"],
        &["contents", "content"],
    );
    assert_eq!(
        wrong,
        [
            "`q` of `POST /api/v1/deploy`",
            "`contents` of `POST /api/v1/deploy`"
        ]
    );
    let wrong = endpoints::unknown_parts(
        &description,
        &endpoints::DEFINE_ACTIONS,
        &[],
        &["actions.sql", "actions.text"],
    );
    assert_eq!(
        wrong,
        ["`actions.text` of `PUT /api/v1/projects/{id}/backend/actions`"]
    );
}
