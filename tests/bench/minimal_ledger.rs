//! The minimal server of webhooks: axum and rusqlite, which write the rows of an event of a known session. It shows the minimum cost,
//! without signatures and verdicts, but equally durable.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::Context as _;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// Argument that starts this program as the minimal server of webhooks; the path of a new database follows.
pub(crate) const ARGUMENT: &str = "minimal-ledger";
/// The tables, as the real server has them.
const SCHEMA: &str = include_str!("../../host/migrations/0009_payments.sql");

/// An event, or sessions that events will be about.
enum Write {
    Event(Value),
    Sessions(Vec<String>),
}

type Queued = (Write, oneshot::Sender<rusqlite::Result<()>>);
type Queue = Arc<mpsc::Sender<Queued>>;

/// Serves a new database until it is killed.
pub(crate) fn serve(path: &str) -> anyhow::Result<()> {
    let writer = Connection::open(Path::new(path))?;
    writer.pragma_update(None, "journal_mode", "WAL")?;
    writer.pragma_update(None, "synchronous", "FULL")?;
    writer.execute_batch(SCHEMA)?;
    let (queue, queued) = mpsc::channel();
    thread::spawn(move || {
        if let Err(error) = write_groups(&writer, &queued) {
            // The receiver sees that the sender is dropped.
            let _ = writeln!(std::io::stderr(), "{error}");
        }
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(thread::available_parallelism()?.get())
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let listener = listener.tap_io(|stream| {
            // A socket that refuses works anyway.
            let _ = stream.set_nodelay(true);
        });
        writeln!(std::io::stdout(), "ready http://{address}")?;
        let router = Router::new()
            .route("/_svc/webhooks/stripe", post(receive))
            .route("/sessions", post(prepare))
            .with_state(Arc::new(queue));
        Ok(axum::serve(listener, router).await?)
    })
}

async fn receive(State(queue): State<Queue>, body: Bytes) -> Response {
    match serde_json::from_slice(&body) {
        Ok(event) => answer_write(&queue, Write::Event(event)).await,
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

async fn prepare(State(queue): State<Queue>, Json(sessions): Json<Vec<String>>) -> Response {
    answer_write(&queue, Write::Sessions(sessions)).await
}

async fn answer_write(queue: &Queue, write: Write) -> Response {
    match queue_write(queue, write).await {
        Ok(()) => Json(json!({ "received": true })).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn queue_write(queue: &Queue, write: Write) -> anyhow::Result<()> {
    let (told, answer) = oneshot::channel();
    queue.send((write, told)).ok().context("no writer")?;
    Ok(answer.await??)
}

/// Commits all queued events together, as the real server does.
fn write_groups(writer: &Connection, queued: &mpsc::Receiver<Queued>) -> rusqlite::Result<()> {
    while let Ok(first) = queued.recv() {
        writer.execute_batch("BEGIN IMMEDIATE")?;
        let group = std::iter::once(first).chain(queued.try_iter());
        let done: Vec<_> = group
            .map(|(write, told)| (perform(writer, write), told))
            .collect();
        writer.execute_batch("COMMIT")?;
        for (result, told) in done {
            // A caller that has disconnected needs no answer.
            let _ = told.send(result);
        }
    }
    Ok(())
}

fn perform(writer: &Connection, write: Write) -> rusqlite::Result<()> {
    match write {
        Write::Event(event) => insert_event(writer, &event),
        Write::Sessions(sessions) => sessions
            .iter()
            .try_for_each(|id| insert_session(writer, id)),
    }
}

/// A session that was begun.
fn insert_session(writer: &Connection, id: &str) -> rusqlite::Result<()> {
    writer
        .prepare_cached(
            "INSERT INTO payment_sessions
                (id, project_id, deployment_id, price_id, price_label, amount, currency, recurring,
                 return_to, cookie_sha256, status, created_at, updated_at, change)
             VALUES (?1, 'project', 'deployment', 'price', 'PDF', 900, 'eur', 0, '/', zeroblob(32),
                 'open', 0, 0, 1)",
        )?
        .execute([id])
        .map(|_| ())
}

/// Writes the rows of an event: the event, its references, and the new state of its session.
fn insert_event(writer: &Connection, event: &Value) -> rusqlite::Result<()> {
    let object = &event["data"]["object"];
    let session = object["metadata"]["svc_session"]
        .as_str()
        .unwrap_or_default();
    writer
        .prepare_cached(
            "INSERT INTO payment_events (id, kind, happened_at, received_at, fact, claimed)
             VALUES (?1, ?2, ?3, ?3, ?4, 1)",
        )?
        .execute(params![
            event["id"].as_str(),
            event["type"].as_str(),
            event["created"].as_i64(),
            object.to_string()
        ])?;
    let number = writer.last_insert_rowid();
    let mut name = writer.prepare_cached(
        "INSERT OR IGNORE INTO payment_references (reference, event) VALUES (?1, ?2)",
    )?;
    name.execute(params![format!("session:{session}"), number])?;
    for field in ["id", "payment_intent"] {
        let id = object[field].as_str().unwrap_or_default();
        name.execute(params![format!("id:{id}"), number])?;
    }
    writer
        .prepare_cached(
            "UPDATE payment_sessions SET status = 'paid', updated_at = ?2, change = change + 1 WHERE id = ?1",
        )?
        .execute(params![session, number])?;
    writer
        .prepare_cached(
            "INSERT INTO payment_mirrors (project_id, changes) VALUES ('project', 1)
             ON CONFLICT (project_id) DO UPDATE SET changes = changes + 1",
        )?
        .execute([])
        .map(|_| ())
}
