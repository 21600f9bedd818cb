//! Rooms over real sockets: each rule of them in a file of its subject.

mod close;
mod ends;
mod hostile;
mod numbers;
mod owner;
mod presence;
mod quotas;
mod random_frames;
mod relay;
mod upgrade;

use serde_json::{Value, json};
use svc_tests::{Builder, Socket, TestServer};

use crate::owner::text;
use crate::project_fixture::{GUESTS, ProjectFixture};

/// A fixture whose backend has rooms, with the frontend `room`.
async fn start_fixture() -> ProjectFixture {
    start_fixture_with(TestServer::builder()).await
}

/// Creates a fixture on a given server.
pub(crate) async fn start_fixture_with(builder: Builder) -> ProjectFixture {
    let fixture = ProjectFixture::on_server(builder.start().await, GUESTS).await;
    set_realtime(&fixture, true).await;
    fixture
}

/// Opens or closes the rooms of a fixture.
async fn set_realtime(fixture: &ProjectFixture, realtime: bool) -> Value {
    let body = json!({ "realtime": realtime });
    let answer = fixture.send(http::Method::PATCH, "", &body).await;
    answer.expect(200).json()
}

/// Joins a room through the page `room`; answers the socket and the client's id.
pub(crate) async fn join(fixture: &ProjectFixture, room: &str) -> (Socket, String) {
    join_page(fixture, "room", room).await
}

/// Joins through another page.
async fn join_page(fixture: &ProjectFixture, slug: &str, room: &str) -> (Socket, String) {
    let path = format!("/{slug}/ws?room={room}");
    let mut socket = fixture.server.socket(&path, &[]).await.unwrap();
    let welcome = socket.envelope().await;
    assert_eq!(welcome["type"], "svc:welcome", "{welcome}");
    let id = text(&welcome["data"]["client_id"]);
    (socket, id)
}
