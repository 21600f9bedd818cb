//! Cost of identifying the visitor: an action with identity and the visitor's status, beside the same action called by
//! nobody.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use ring::digest::{SHA256, digest};
use rusqlite::{Connection, params};
use serde_json::json;

use super::items;
use super::owner::Owner;
use super::report::{Goals, print_title};
use super::rounds::{Contender, compare, print_head, print_ratio};
use super::server::{Bench, Running};
use super::tenant;

const DATA: &str = "identity";
const SLUG: &str = "items";
/// Visitors who have signed in.
const VISITORS: usize = 10_000;
/// Number of their sessions.
const SESSIONS: usize = 100_000;
/// Number of sessions that call in turn: one of each visitor.
const CALLERS: usize = VISITORS;
/// Sessions of each visitor.
const EACH: usize = SESSIONS / VISITORS;
const CONNECTIONS: usize = 64;
/// Reads a row by its key, for the signed-in visitor.
const OWN: (&str, &str) = (
    "own",
    "SELECT id, name, note FROM items WHERE id = :id AND :svc_user_id <> ''",
);
/// A provider that is never asked: its sessions are there already.
const SETTINGS: &str = "
[[providers]]
name = \"bench\"
issuer = \"https://bench.example\"
client_id = \"bench\"
";

/// A page with visitors.
struct Page {
    host: String,
    deployment: String,
}

pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "Who calls, of {VISITORS} visitors with {SESSIONS} sessions, {CONNECTIONS} connections"
    ))?;
    let (svc, credential) = bench.start_owned_with(DATA, SETTINGS)?;
    tenant::create_tenant(&mut Owner::new(&svc, &credential)?, SLUG, &[OWN])?;
    let database = bench.directory(DATA).join("control.db");
    let page = insert_visitors(&database, svc.address)?;
    let anonymous = calls(&page, "row", false);
    let known = calls(&page, "own", true);
    let status: Vec<_> = (0..CALLERS).map(|number| status(&page, number)).collect();
    check(&svc, &known[0], &status[0])?;
    print_head("request")?;
    let contenders = [&anonymous, &known, &status].map(|requests| Contender::new(&svc, requests));
    let [anonymous, known, status] = compare(&contenders, CONNECTIONS)?;
    anonymous.print("row by key", "nobody")?;
    for (name, figures) in [("row by key", &known), ("status", &status)] {
        figures.print(name, "visitor")?;
        print_ratio(figures, &anonymous, "ratio")?;
        let what = format!("{name} of a visitor: processor time, of nobody's row");
        goals.at_most(&what, figures.cost() / anonymous.cost(), 1.2);
    }
    Ok(())
}

/// The token of a session.
fn token(number: usize) -> String {
    format!("{number:0>43}")
}

/// Writes visitors and sessions down as the server does.
fn insert_visitors(database: &std::path::Path, address: SocketAddr) -> anyhow::Result<Page> {
    let mut control = Connection::open(database)?;
    control.busy_timeout(std::time::Duration::from_secs(30))?;
    let (deployment, project, label): (String, String, String) = control.query_row(
        "SELECT d.id, p.id, p.host_label FROM deployments d JOIN projects p ON p.id = d.project_id WHERE d.slug = ?1",
        [SLUG],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let write = control.transaction()?;
    {
        let mut visitor = write.prepare(
            "INSERT INTO visitors (id, project_id, issuer, subject, provider, email, name, created_at, last_seen_at)
             VALUES (?1, ?2, 'https://bench.example', ?1, 'bench', ?1 || '@example.com', 'Somebody', ?3, ?3)",
        )?;
        // Last seen in the far future, so that no visitor is recorded as seen meanwhile.
        let later = 4_102_444_800_000_i64;
        for number in 0..VISITORS {
            visitor.execute(params![format!("usr_{number:0>22}"), project, later])?;
        }
        let mut session = write.prepare(
            "INSERT INTO visitor_sessions (token_sha256, visitor_id, deployment_id, provider, created_at, expires_at)
             VALUES (?1, ?2, ?3, 'bench', 0, ?4)",
        )?;
        for number in 0..SESSIONS {
            let key = digest(&SHA256, token(number).as_bytes());
            let visitor = format!("usr_{:0>22}", number % VISITORS);
            session.execute(params![key.as_ref(), visitor, deployment, later])?;
        }
    }
    write.commit()?;
    Ok(Page {
        host: format!("{label}.localhost:{}", address.port()),
        deployment,
    })
}

fn cookie(page: &Page, number: usize) -> String {
    // Spread over all sessions, each of another visitor.
    let session = number * EACH + number / (VISITORS / EACH);
    format!(
        "Cookie: svc_session_{}={}\r\n",
        page.deployment,
        token(session)
    )
}

fn calls(page: &Page, action: &str, known: bool) -> Vec<Vec<u8>> {
    let keys = items::keys().cycle().take(CALLERS).enumerate();
    keys.map(|(number, key)| {
        let body = json!({ "action": action, "params": { "id": key } }).to_string();
        let cookie = if known { cookie(page, number) } else { String::new() };
        let (host, length) = (&page.host, body.len());
        format!(
            "POST /{SLUG}/api/op HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n{cookie}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    })
    .collect()
}

fn status(page: &Page, number: usize) -> Vec<u8> {
    let (host, cookie) = (&page.host, cookie(page, number));
    format!("GET /{SLUG}/auth/status HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\n").into_bytes()
}

/// Checks that the visitors are signed in.
fn check(svc: &Running, call: &[u8], status: &[u8]) -> anyhow::Result<()> {
    let rows = tenant::call_json(svc, call)?;
    ensure!(
        rows["rows"].as_array().is_some_and(|rows| rows.len() == 1),
        "{rows}"
    );
    let user = tenant::call_json(svc, status)?;
    let id = user["user"]["id"].as_str().context("nobody is signed in")?;
    ensure!(id.starts_with("usr_"), "{user}");
    Ok(())
}
