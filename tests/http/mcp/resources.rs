//! Resources: the guide for agents and the guides, as HTTP has them, in both eras and without a credential.

use serde_json::{Value, json};
use svc::guides::GUIDES;
use svc_tests::{ReadAnswer, TestServer};

use super::client::Client;
use crate::project_fixture::{GUESTS, ProjectFixture};

#[tokio::test]
async fn texts_for_agents_are_listed_and_read() {
    let server = TestServer::start().await;
    for client in [
        Client::anonymous(&server),
        Client::anonymous(&server).legacy(),
    ] {
        let listed = client.result("resources/list", &json!({})).await;
        let listed = listed["resources"].as_array().unwrap();
        let names: Vec<&str> = listed
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        let guides = GUIDES.iter().map(|guide| guide.name);
        let expected: Vec<&str> = std::iter::once("llms.txt").chain(guides).collect();
        assert_eq!(names, expected);
        for one in listed {
            let uri = one["uri"].as_str().unwrap();
            let read = client
                .result("resources/read", &json!({ "uri": uri }))
                .await;
            let contents = read["contents"].as_array().unwrap();
            assert_eq!(contents.len(), 1, "{uri}");
            let (_, path) = uri.split_at(uri.find("/llms").or(uri.find("/_svc")).unwrap());
            let served = server.get(path).answer().await.expect(200);
            let text = contents[0]["text"].as_str().unwrap();
            assert_eq!(text, served.text(), "{uri}");
            assert_eq!(one["size"], json!(text.len()), "{uri}");
            assert_eq!(
                (&contents[0]["uri"], &contents[0]["mimeType"]),
                (&one["uri"], &one["mimeType"])
            );
            assert!(!one["description"].as_str().unwrap().is_empty(), "{uri}");
        }
        let templates = client.result("resources/templates/list", &json!({})).await;
        assert_eq!(templates["resourceTemplates"], json!([]));
    }
}

#[tokio::test]
async fn what_is_no_resource_is_told() {
    let fixture = ProjectFixture::new(GUESTS).await;
    let server = &fixture.server;
    for (params, code) in [
        (json!({ "uri": "file:///etc/passwd" }), -32002),
        (json!({}), -32602),
    ] {
        let legacy = Client::anonymous(server).legacy();
        let answer = legacy.send_request("resources/read", &params).await;
        assert_eq!(answer.json()["error"]["code"], json!(code), "{params}");
    }
    let modern = Client::anonymous(server);
    let answer = modern
        .send_request("resources/read", &json!({ "uri": "x:" }))
        .await;
    assert!(
        answer.json()["error"]["code"].is_number(),
        "{}",
        answer.text()
    );
    // An app has tools alone.
    fixture.define(&[("one", "SELECT 1 AS one")]).await;
    let on = json!({ "agents": true });
    fixture.send(http::Method::PATCH, "", &on).await.expect(200);
    let app = Client::for_app(server, "room");
    for method in ["resources/list", "resources/read"] {
        let answer = app.send_request(method, &json!({ "uri": "x:" })).await;
        let error: Value = answer.json()["error"].clone();
        assert_eq!(error["code"], -32601, "{method}");
    }
}
