//! A store that speaks S3's protocol, in this process: as much of it as a bucket of content needs, and whatever can go wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use serde_json::json;
use svc::config::{S3Settings, Settings};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Access key and secret that the store accepts.
const KEY: (&str, &str) = ("AKIDOFTESTS", "secret-of-the-tests-key");
/// Token with which a container fetches the key.
const TOKEN: &str = "word-of-the-container";
/// Number of objects in a page of a list.
const PAGE: usize = 3;

/// Faults of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BucketFault {
    /// No fault.
    #[default]
    None,
    /// Answers everything with 503.
    Unavailable,
    /// Answers every other request with 500.
    EveryOtherFails,
    /// Answers conditional writes with 501.
    NoConditionalWrites,
    /// Answers writes with 409, as while another write of the object is in progress.
    WriteConflict,
    /// Answers deletions with 403, as for a key without that permission.
    DeletionForbidden,
    /// Answers deletions with 500.
    DeletionFails,
    /// Keeps versions of objects, and names the version of each that is written.
    KeepsVersions,
    /// Answers with 404 and an HTML page, as a gateway that has lost its store.
    ForeignNotFound,
}

/// A store with a bucket `pages`. Dropping it ends it.
#[derive(Debug)]
pub struct Bucket {
    shared: Arc<Shared>,
    address: SocketAddr,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    objects: Mutex<BTreeMap<String, Bytes>>,
    fault: Mutex<BucketFault>,
    requests: Mutex<Vec<String>>,
    undeletable: Mutex<Option<String>>,
}

impl Bucket {
    /// Starts one on a free port.
    pub async fn start() -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Shared>::default();
        let app = Router::new().fallback(answer);
        let app = app.with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            shared,
            address,
            task,
        }
    }

    /// Changes a server's settings, so that it stores its content in this bucket below a prefix.
    pub fn settings(&self, prefix: &str, settings: &mut Settings) {
        let url = format!("s3://pages/{prefix}");
        settings.content_url = Some(url.parse().unwrap());
        let mut s3 = S3Settings::default();
        s3.endpoint = Some(self.endpoint().parse().unwrap());
        s3.region = Some("eu-test-1".to_owned());
        s3.access_key_id = Some(KEY.0.to_owned());
        s3.secret_access_key = KEY.1.to_owned();
        settings.s3 = Some(s3);
    }

    /// Returns the environment of a process that stores its content here.
    pub fn environment(&self) -> [(&'static str, String); 4] {
        [
            ("AWS_ENDPOINT_URL", self.endpoint()),
            ("AWS_REGION", "eu-test-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY.0.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", KEY.1.to_owned()),
        ]
    }

    /// Returns the environment of a container that fetches its key from a URL; `token` is the file of its authorization token.
    pub fn environment_of_container(&self, token: &Path) -> [(&'static str, String); 3] {
        std::fs::write(token, TOKEN).unwrap();
        let keys = format!("{}/keys", self.endpoint());
        [
            ("AWS_ENDPOINT_URL", self.endpoint()),
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", keys),
            (
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                token.to_str().unwrap().to_owned(),
            ),
        ]
    }

    /// Address of the store.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the settings, as a file has them, of a server that reaches this store at another address.
    pub fn settings_at(address: SocketAddr) -> String {
        let (id, secret) = KEY;
        format!(
            "[s3]\nendpoint = 'http://{address}'\nregion = 'eu-test-1'\naccess_key_id = '{id}'\n\
             secret_access_key = '{secret}'\n"
        )
    }

    /// The secret part of the key.
    pub fn secret() -> &'static str {
        KEY.1
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the current fault.
    pub fn set_fault(&self, fault: BucketFault) {
        *self.shared.fault.lock().unwrap() = fault;
    }

    /// Gives access to the objects by their paths: bucket and name.
    pub fn objects<T>(&self, change: impl FnOnce(&mut BTreeMap<String, Bytes>) -> T) -> T {
        change(&mut self.shared.objects.lock().unwrap())
    }

    /// Refuses to delete one object, named by its path, or none.
    pub fn forbid_deletion(&self, object: Option<&str>) {
        *self.shared.undeletable.lock().unwrap() = object.map(str::to_owned);
    }

    /// Returns and clears the methods and paths of requests.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.requests.lock().unwrap())
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An S3 error document. It contains the access key, which must not reach a log.
fn error(status: u16, code: &str, key: &str) -> Response {
    let document = format!(
        "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>It is so.</Message><AWSAccessKeyId>{key}</AWSAccessKeyId></Error>"
    );
    let status = StatusCode::from_u16(status).unwrap();
    (status, document).into_response()
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let query = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let query: BTreeMap<String, String> = query.into_owned().collect();
    let path = uri.path().trim_start_matches('/').to_owned();
    let mood = *shared.fault.lock().unwrap();
    let mut asked = shared.requests.lock().unwrap();
    asked.push(format!("{method} {path}"));
    if mood == BucketFault::EveryOtherFails && asked.len() % 2 == 1 {
        return error(500, "InternalError", "");
    }
    drop(asked);
    if mood == BucketFault::Unavailable {
        return error(503, "SlowDown", "");
    }
    if mood == BucketFault::ForeignNotFound {
        return (StatusCode::NOT_FOUND, "<html>Nothing here").into_response();
    }
    let is_kept = shared.undeletable.lock().unwrap().as_ref() == Some(&path);
    let signed = headers["authorization"].to_str().unwrap();
    if path == "keys" && signed == TOKEN {
        let keys = json!({ "AccessKeyId": KEY.0, "SecretAccessKey": KEY.1, "Token": TOKEN, "Expiration": "2999-01-01T00:00:00Z" });
        return keys.to_string().into_response();
    }
    let key = signed.split(['=', '/']).nth(1).unwrap();
    if key != KEY.0 {
        return error(403, "InvalidAccessKeyId", key);
    }
    if !path.starts_with("pages") {
        return error(404, "NoSuchBucket", "");
    }
    let mut objects = shared.objects.lock().unwrap();
    let conditional = headers.contains_key("if-none-match");
    match (method, objects.get(&path)) {
        (Method::GET, _) if query.contains_key("list-type") => list(&objects, &query),
        (Method::GET | Method::HEAD, Some(object)) => read(object, headers.get("range")),
        (Method::GET | Method::HEAD, None) => error(404, "NoSuchKey", ""),
        (Method::PUT, _) if conditional && mood == BucketFault::NoConditionalWrites => {
            error(501, "NotImplemented", "")
        }
        (Method::PUT, _) if mood == BucketFault::WriteConflict => {
            error(409, "OperationAborted", "")
        }
        (Method::PUT, Some(_)) if conditional => error(412, "PreconditionFailed", ""),
        (Method::PUT, _) => {
            objects.insert(path, body);
            let written = [("etag", "\"1\"")];
            match mood {
                BucketFault::KeepsVersions => {
                    (written, [("x-amz-version-id", "1")]).into_response()
                }
                _ => written.into_response(),
            }
        }
        (Method::DELETE, _) if is_kept || mood == BucketFault::DeletionForbidden => {
            error(403, "AccessDenied", key)
        }
        (Method::DELETE, _) if mood == BucketFault::DeletionFails => {
            error(500, "InternalError", "")
        }
        (Method::DELETE, _) => {
            objects.remove(&path);
            StatusCode::NO_CONTENT.into_response()
        }
        (method, _) => panic!("{method} is not spoken here"),
    }
}

/// Answers an object, or a piece of it.
fn read(object: &Bytes, range: Option<&HeaderValue>) -> Response {
    let seen = [
        ("last-modified", "Fri, 20 Nov 2026 12:00:00 GMT"),
        ("etag", "\"1\""),
    ];
    let Some(range) = range else {
        return (seen, object.clone()).into_response();
    };
    let range = range.to_str().unwrap().strip_prefix("bytes=").unwrap();
    let (first, last) = range.split_once('-').unwrap();
    let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
    let last = last.min(object.len() - 1);
    let piece = object.slice(first..=last);
    let shown = [(
        "content-range",
        format!("bytes {first}-{last}/{}", object.len()),
    )];
    (StatusCode::PARTIAL_CONTENT, seen, shown, piece).into_response()
}

/// Answers one page of a list; the continuation token is its last name.
fn list(objects: &BTreeMap<String, Bytes>, query: &BTreeMap<String, String>) -> Response {
    let prefix = query.get("prefix").map_or("", String::as_str);
    let after = query.get("continuation-token").map_or("", String::as_str);
    let names = objects.iter().filter_map(|(path, object)| {
        let name = path.strip_prefix("pages/")?;
        (name.starts_with(prefix) && name > after).then_some((name, object.len()))
    });
    let mut names: Vec<_> = names.collect();
    let more = names.len() > PAGE;
    names.truncate(PAGE);
    let mut document = format!("<ListBucketResult><IsTruncated>{more}</IsTruncated>");
    if let Some((last, _)) = names.last().filter(|_| more) {
        write!(
            document,
            "<NextContinuationToken>{last}</NextContinuationToken>"
        )
        .unwrap();
    }
    for (name, bytes) in names {
        write!(
            document,
            "<Contents><Key>{name}</Key><LastModified>2026-11-20T12:00:00.000Z</LastModified><ETag>\"1\"</ETag><Size>{bytes}</Size></Contents>"
        )
        .unwrap();
    }
    document.push_str("</ListBucketResult>");
    document.into_response()
}
