//! Files of visitors: downloads that an action allows beside calls of an action, uploads, and calls of another tenant beside these.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use serde_json::json;

use super::background_load::BackgroundLoad;
use super::neighbours::{self, Figures};
use super::owner::{Owner, text};
use super::report::{Goals, print_line, print_title, quantile};
use super::rounds::{Contender, compare, print_head, print_ratio};
use super::server::Running;
use super::{Run, client, load, tenant};

const CONNECTIONS: usize = 64;
const DOWNLOAD_BYTES: usize = 10 * 1024;
const UPLOAD_BYTES: usize = 100 * 1024;
/// Files of their own bytes, which are uploaded in turns: more than there is time for, as a file that is there already costs less.
const FILES: usize = 4096;
/// Uploads at once.
const UPLOADERS: usize = 16;
const TIME: Duration = Duration::from_secs(4);
/// Alternating runs of another tenant's calls, alone and beside uploads.
const RUNS: usize = 5;
const UPLOADS: BackgroundLoad = BackgroundLoad {
    clients: UPLOADERS,
    ahead: Duration::from_millis(500),
};
/// Limits that uploads of one client do not meet.
const LIMITS: &str = "upload_per_minute = 10000000\nupload_burst = 10000000\nupload_deployment_per_minute = 10000000
upload_deployment_burst = 10000000\nupload_day_bytes = 1000000000000\nuploads_at_once = 1000\nuploads_total = 1000
file_per_minute = 100000000\nfile_burst = 100000000\n";

/// Measures files of visitors.
pub(crate) fn measure(run: &Run, goals: &mut Goals) -> anyhow::Result<()> {
    let (svc, credential) = run.bench.start_owned_with("uploads", LIMITS)?;
    let mut owner = Owner::new(&svc, &credential)?;
    owner.create_project("Bench")?;
    let ddl = "CREATE TABLE photos (id INTEGER PRIMARY KEY, file TEXT NOT NULL REFERENCES svc_files(id) ON DELETE CASCADE); CREATE INDEX by_file ON photos (file);";
    owner.send("POST", "/backend", &json!({ "ddl": ddl }))?;
    let actions = json!({ "actions": [
        { "name": "add", "sql": "INSERT INTO photos (file) VALUES (:svc_file)", "files": { "anonymous": true } },
        { "name": "see", "sql": "SELECT 1 FROM photos WHERE file = :svc_file" },
        { "name": "get", "sql": "SELECT file FROM photos WHERE id = :id" },
    ] });
    owner.send("PUT", "/backend/actions", &actions)?;
    let page = json!({ "type": "html", "content": "<p>Photos", "requested_slug": "photos" });
    owner.send("POST", "/frontends", &page)?;
    measure_downloads(&svc, goals)?;
    measure_uploads(&svc, goals)?;
    // The server has closed a connection that was idle for as long as the rounds take.
    owner.reconnect(&svc)?;
    tenant::create_tenant(&mut owner, neighbours::QUIET, &[])?;
    measure_neighbours(&svc, goals)
}

/// An upload of so many bytes of its own, which are no text and no picture.
fn upload(svc: &Running, number: usize, bytes: usize) -> Vec<u8> {
    let numbers = (0..=250_u8).cycle().take(bytes);
    let mut content: Vec<u8> = numbers.collect();
    content[8..16].copy_from_slice(&number.to_le_bytes());
    client::post_file(svc.address, "/photos/api/files/add", &content)
}

/// Downloads beside calls of an action that answers a row by its key.
fn measure_downloads(svc: &Running, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "A file of 10 KB that an action allows, beside a row by its key, over {CONNECTIONS} keep-alive connections"
    ))?;
    let made = svc.client()?.send(&upload(svc, FILES, DOWNLOAD_BYTES))?;
    ensure!(
        made.status == 201,
        "{}",
        String::from_utf8_lossy(&made.body)
    );
    let made: serde_json::Value = serde_json::from_slice(&made.body)?;
    let id = text(&made["file"], "id")?;
    let path = format!("/photos/api/files/see/{id}");
    let download = [client::get(svc.address, &path, "identity")];
    let call = json!({ "action": "get", "params": { "id": 1 } });
    let call = [client::post(svc.address, "/photos/api/op", &call)];
    print_head("answer")?;
    let contenders = [Contender::new(svc, &download), Contender::new(svc, &call)];
    let [ours, theirs] = compare(&contenders, CONNECTIONS)?;
    ours.print("10 KB", "file")?;
    theirs.print("", "row")?;
    print_ratio(&ours, &theirs, "ratio")?;
    goals.at_least("an allowed download, of a call", ours.ratio(&theirs), 0.7);
    Ok(())
}

fn measure_uploads(svc: &Running, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!("Uploads of 100 KB, {UPLOADERS} at once"))?;
    let requests: Vec<_> = (0..FILES)
        .map(|number| upload(svc, number, UPLOAD_BYTES))
        .collect();
    let done = load::run_expecting(svc.address, &requests, UPLOADERS, TIME, 201)?;
    let (half, most) = (
        quantile(&done.latencies, 0.5) / 1e3,
        quantile(&done.latencies, 0.99) / 1e3,
    );
    print_line(&format!(
        "{:.0} a second: p50 {half:.1} ms, p99 {most:.1} ms",
        done.rate
    ))?;
    goals.at_most("an upload of 100 KB: p99, ms", most, 50.0);
    Ok(())
}

/// Calls of another tenant, alone and while clients upload.
fn measure_neighbours(svc: &Running, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "Calls over {} connections, {RUNS} alternating runs of {} ms, beside {UPLOADERS} uploads of 100 KB at once",
        neighbours::CONNECTIONS,
        neighbours::RUN.as_millis()
    ))?;
    let number = AtomicUsize::new(FILES + 1);
    let send_request = |client: &mut client::Client| {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let answer = client.send(&upload(svc, number, UPLOAD_BYTES))?;
        ensure!(answer.status == 201, "an upload was {answer:?}");
        Ok(())
    };
    let (mut quiet, mut beside) = (Figures::default(), Figures::default());
    neighbours::measure_operations(svc, &mut Figures::default())?;
    for _ in 0..RUNS {
        neighbours::measure_operations(svc, &mut quiet)?;
        UPLOADS.run_during(svc, send_request, || {
            neighbours::measure_operations(svc, &mut beside)
        })?;
        svc.await_rest()?;
    }
    neighbours::print_beside(&quiet, &[("uploads", &beside)], goals)
}
