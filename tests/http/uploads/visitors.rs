//! Uploads of visitors who sign in, and the end of all that is known of one.

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use svc_tests::Answer;
use svc_tests::browser::Browser;

use crate::owner::text;
use crate::project_fixture::ProjectFixture;
use crate::visitors::guest_book::GuestBook;
use svc_tests::TestServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const DDL: &str = "CREATE TABLE photos (id INTEGER PRIMARY KEY, file TEXT NOT NULL REFERENCES svc_files(id) ON DELETE CASCADE, owner TEXT NOT NULL);";

async fn guest_book() -> GuestBook {
    let server = TestServer::builder().settings(|settings| settings.dev = true);
    let fixture = ProjectFixture::on_server(server.start().await, DDL).await;
    let add = "INSERT INTO photos (file, owner) SELECT :svc_file, :svc_user_id WHERE (SELECT count(*) FROM photos WHERE owner = :svc_user_id) < 2";
    let actions = json!([
        { "name": "add", "sql": add },
        { "name": "more", "sql": "INSERT INTO photos (file, owner) VALUES (:svc_file, :svc_user_id)" },
        { "name": "see", "sql": "SELECT 1 FROM photos WHERE file = :svc_file AND owner = :svc_user_id" },
        { "name": "remove", "sql": "DELETE FROM svc_files WHERE id = :id AND user_id = :svc_user_id" },
    ]);
    fixture.put(&actions).await.expect(200);
    GuestBook::from_fixture(fixture).await
}

async fn upload(book: &GuestBook, browser: &mut Browser, content: &str) -> Answer {
    let headers = HeaderMap::from_iter([(http::header::ORIGIN, book.origin.parse().unwrap())]);
    let url = book.url("/api/files/add");
    browser
        .send_request(Method::POST, &url, headers, Some(content.to_owned()))
        .await
}

async fn see(book: &GuestBook, browser: &mut Browser, id: &str) -> Answer {
    browser
        .get(&book.url(&format!("/api/files/see/{id}")))
        .await
}

#[tokio::test]
async fn a_file_is_its_visitors_and_goes_with_the_visitor() {
    let book = guest_book().await;
    let (mut ada, mut bob) = (book.browser(), book.browser());
    upload(&book, &mut ada, "x")
        .await
        .problem(401, "identity_required");
    for (browser, name) in [(&mut ada, "ada"), (&mut bob, "bob")] {
        let form = format!("name={name}&email={name}%40example.com");
        book.sign_in(browser, &form, "").await;
    }
    let made = upload(&book, &mut ada, "Ada's").await.expect(201).json();
    let id = text(&made["file"]["id"]);
    let user = text(&book.user(&mut ada).await["id"]);
    let rows = book.fixture.rows("SELECT user_id FROM svc_files").await;
    assert_eq!(rows, json!([{ "user_id": user }]));
    let own = see(&book, &mut ada, &id).await.expect(200);
    assert_eq!(own.text(), "Ada's");
    assert_eq!(
        own.header("cache-control"),
        Some("private, max-age=0, must-revalidate")
    );
    see(&book, &mut bob, &id).await.problem(404, "not_found");
    let mut nobody = book.browser();
    see(&book, &mut nobody, &id)
        .await
        .problem(401, "identity_required");
    upload(&book, &mut ada, "second").await.expect(201);
    upload(&book, &mut ada, "third")
        .await
        .problem(403, "upload_refused");
    let bobs = upload(&book, &mut bob, "Bob's").await.expect(201).json();
    let remove = json!({ "action": "remove", "params": { "id": id } });
    let nothing = book.call(&mut bob, &remove).await.expect(200).json();
    assert_eq!(nothing["rows_affected"], 0);
    // The owner forgets Ada, with her files.
    let path = format!("/{}/visitors/{user}?files=true", book.fixture.project);
    let (owner, server) = (&book.fixture.owner, &book.fixture.server);
    owner.delete(server, &path).await.expect(204);
    let rows = book.fixture.rows("SELECT id FROM svc_files").await;
    assert_eq!(rows, json!([{ "id": bobs["file"]["id"] }]));
    assert_eq!(book.fixture.count("photos").await, 1);
    assert_eq!(book.user(&mut ada).await, Value::Null);
}

/// Begins an upload whose body has one byte to come.
async fn begin_upload(book: &GuestBook, action: &str, cookies: &str) -> TcpStream {
    let address = book.fixture.server.address();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let host = book.origin.trim_start_matches("http://");
    let head = format!(
        "POST /room/api/files/{action} HTTP/1.1\r\nHost: {host}\r\nOrigin: {}\r\nCookie: {cookies}\r\nContent-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
        book.origin
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server asks for the body of an upload that it has let in.
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"x").await.unwrap();
    stream
}

/// Sends the last byte of an upload; returns its answer.
async fn end_upload(mut stream: TcpStream) -> String {
    stream.write_all(b"y").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn an_upload_does_not_outlive_what_let_it_in() {
    let book = guest_book().await;
    let mut ada = book.browser();
    book.sign_in(&mut ada, "name=ada&email=ada%40example.com", "")
        .await;
    let cookies = ada.cookie(&book.url("/api/files/add")).unwrap();
    let (fixture, user) = (&book.fixture, text(&book.user(&mut ada).await["id"]));
    let allowed = begin_upload(&book, "add", &cookies).await;
    let answer = end_upload(allowed).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let of_action = begin_upload(&book, "more", &cookies).await;
    let path = format!("/{}/backend/actions/more", fixture.project);
    fixture
        .owner
        .delete(&fixture.server, &path)
        .await
        .expect(204);
    let answer = end_upload(of_action).await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    let of_visitor = begin_upload(&book, "add", &cookies).await;
    let path = format!("/{}/visitors/{user}?files=true", fixture.project);
    fixture
        .owner
        .delete(&fixture.server, &path)
        .await
        .expect(204);
    let answer = end_upload(of_visitor).await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert_eq!(fixture.count("svc_files").await, 0);
}
