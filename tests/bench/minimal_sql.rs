//! The minimal server of a database: axum and rusqlite, one route. It shows the minimum cost of a call, without a gate,
//! limits or tenants, but equally durable.

use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, bail};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::items;

/// Argument that starts this program as the minimal server of a database; the commit mode and the path of a new database follow.
pub(crate) const ARGUMENT: &str = "minimal-sql";
/// Commits all queued calls together.
pub(crate) const GROUPED: &str = "grouped";
/// Commits every insert alone.
pub(crate) const SINGLE: &str = "single";

/// A call, as `svc` takes it.
#[derive(Deserialize)]
struct Call {
    action: String,
    #[serde(default)]
    params: Params,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Params {
    id: i64,
    first: i64,
    name: String,
    note: String,
}

#[derive(Serialize)]
struct Row<'a> {
    id: i64,
    name: &'a str,
    note: Option<&'a str>,
}

struct Write {
    /// Name and note of a new row; `None` deletes the new rows.
    row: Option<(String, String)>,
    answer: oneshot::Sender<rusqlite::Result<i64>>,
}

struct Server {
    readers: Mutex<Vec<Connection>>,
    writer: mpsc::Sender<Write>,
}

/// Serves a new database until it is killed.
pub(crate) fn serve(commits: &str, path: &str) -> anyhow::Result<()> {
    let path = Path::new(path);
    let writer = open(path)?;
    writer.execute_batch(items::SCHEMA)?;
    writer.execute_batch(items::SEED)?;
    // Each is used by a thread of the runtime, for as long as the statement takes.
    let threads = thread::available_parallelism()?.get();
    let readers: Result<_, _> = (0..threads).map(|_| open(path)).collect();
    let (queue, queued) = mpsc::channel();
    let work = match commits {
        GROUPED => write_groups,
        SINGLE => write_singly,
        other => bail!("{other}: {GROUPED} or {SINGLE}"),
    };
    thread::spawn(move || {
        if let Err(error) = work(&writer, &queued) {
            // The receiver sees that the sender is dropped.
            let _ = writeln!(std::io::stderr(), "{error}");
        }
    });
    let server = Arc::new(Server {
        readers: Mutex::new(readers?),
        writer: queue,
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
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
            .route("/{slug}/api/op", post(op))
            .with_state(server);
        Ok(axum::serve(listener, router).await?)
    })
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

async fn op(State(server): State<Arc<Server>>, Json(call): Json<Call>) -> Response {
    let params = call.params;
    let json = match call.action.as_str() {
        "row" => server.read(items::SELECT_ROW, params.id),
        "range" => server.read(items::SELECT_RANGE, params.first),
        "insert" => server.write(Some((params.name, params.note))).await,
        "undo" => server.write(None).await,
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    match json {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

impl Server {
    fn read(&self, sql: &str, key: i64) -> anyhow::Result<Vec<u8>> {
        let lock = || self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = lock().pop().context("a reader for each thread")?;
        let json = read(&reader, sql, key);
        lock().push(reader);
        json
    }

    async fn write(&self, row: Option<(String, String)>) -> anyhow::Result<Vec<u8>> {
        let (answer, answered) = oneshot::channel();
        let write = Write { row, answer };
        self.writer.send(write).ok().context("no writer")?;
        let id = answered.await??;
        Ok(format!(
            "{{\"rows\":[{{\"id\":{id}}}],\"columns\":[\"id\"],\"rows_affected\":1,\"truncated\":false}}"
        )
        .into_bytes())
    }
}

fn read(reader: &Connection, sql: &str, key: i64) -> anyhow::Result<Vec<u8>> {
    let mut statement = reader.prepare_cached(sql)?;
    let mut rows = statement.query([key])?;
    let mut json = b"{\"rows\":[".to_vec();
    let mut first = true;
    while let Some(row) = rows.next()? {
        if !std::mem::take(&mut first) {
            json.push(b',');
        }
        let row = Row {
            id: row.get(0)?,
            name: row.get_ref(1)?.as_str()?,
            note: row.get_ref(2)?.as_str_or_null()?,
        };
        serde_json::to_writer(&mut json, &row)?;
    }
    json.extend_from_slice(
        b"],\"columns\":[\"id\",\"name\",\"note\"],\"rows_affected\":0,\"truncated\":false}",
    );
    Ok(json)
}

fn write_groups(writer: &Connection, queued: &mpsc::Receiver<Write>) -> rusqlite::Result<()> {
    while let Ok(first) = queued.recv() {
        writer.execute_batch("BEGIN IMMEDIATE")?;
        let group = std::iter::once(first).chain(queued.try_iter());
        let done: Vec<_> = group
            .map(|write| (perform(writer, write.row), write.answer))
            .collect();
        writer.execute_batch("COMMIT")?;
        for (result, answer) in done {
            // A caller that has disconnected needs no answer.
            let _ = answer.send(result);
        }
    }
    Ok(())
}

fn write_singly(writer: &Connection, queued: &mpsc::Receiver<Write>) -> rusqlite::Result<()> {
    for write in queued {
        let result = perform(writer, write.row);
        // As above.
        let _ = write.answer.send(result);
    }
    Ok(())
}

fn perform(writer: &Connection, row: Option<(String, String)>) -> rusqlite::Result<i64> {
    match row {
        Some((name, note)) => {
            let mut insert = writer.prepare_cached(items::INSERT)?;
            insert.query_one([name, note], |row| row.get(0))
        }
        None => writer.execute(items::DELETE_NEW_ROWS, []).map(|_| 0),
    }
}
