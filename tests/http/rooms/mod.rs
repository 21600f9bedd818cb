//! Rooms over real sockets: each rule of them in a file of its subject.

mod close;
mod ends;
mod hostile;
mod numbers;
mod owner;
mod presence;
mod quotas;
mod relay;
mod thrown;
mod upgrade;

use serde_json::{Value, json};
use svc_tests::{Builder, Socket, TestServer};

use crate::account::text;
use crate::house::{GUESTS, House};

/// A house whose backend has rooms, with the frontend `room`.
async fn house() -> House {
    house_on(TestServer::builder()).await
}

/// Makes a house on a server of one's own.
pub(crate) async fn house_on(builder: Builder) -> House {
    let house = House::on(builder.start().await, GUESTS).await;
    switch(&house, true).await;
    house
}

/// Opens or closes the rooms of a house.
async fn switch(house: &House, realtime: bool) -> Value {
    let body = json!({ "realtime": realtime });
    let answer = house.send(http::Method::PATCH, "", &body).await;
    answer.expect(200).json()
}

/// Joins a room through the page `room`; answers the socket and the client's id.
pub(crate) async fn join(house: &House, room: &str) -> (Socket, String) {
    join_by(house, "room", room).await
}

/// Joins through another page.
async fn join_by(house: &House, slug: &str, room: &str) -> (Socket, String) {
    let path = format!("/{slug}/ws?room={room}");
    let mut socket = house.server.socket(&path, &[]).await.unwrap();
    let welcome = socket.envelope().await;
    assert_eq!(welcome["type"], "svc:welcome", "{welcome}");
    let id = text(&welcome["data"]["client_id"]);
    (socket, id)
}
