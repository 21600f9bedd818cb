//! Sites: publications of a thousand files, releases of ten thousand, and views of their files beside pages and nginx.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value, json};

use super::owner::{Owner, text};
use super::report::{Goals, median, millis, print_line, print_title, quantile};
use super::rounds::{Contender, compare, print_head, print_ratio};
use super::server::Running;
use super::source_generator::SourceGenerator;
use super::{Run, client, load, nginx};

const FILES: usize = 1_000;
const FILE_BYTES: usize = 10 * 1024;
const MANY_FILES: usize = 10_000;
const CONNECTIONS: usize = 64;
/// Connections that read large files.
const READERS: usize = 4;
const ROUNDS: usize = 40;
/// Time for which page views are measured beside publications.
const BESIDE: Duration = Duration::from_secs(4);
/// Concurrent visitors: enough to notice a stall, too few to cause one.
const VISITORS: usize = 8;

/// Measures sites.
pub(crate) fn measure(run: &Run, goals: &mut Goals) -> anyhow::Result<()> {
    let (svc, credential) = run.bench.start_owned("sites")?;
    let mut owner = Owner::new(&svc, &credential)?;
    owner.create_project("Bench")?;
    measure_publications(&mut owner, goals)?;
    measure_releases(&mut owner, goals)?;
    measure_views(run, &svc, &mut owner, goals)?;
    measure_beside(&svc, &mut owner, goals)
}

/// A set of files, each of its own text, so that none is sent twice.
fn files(count: usize, bytes: usize, seed: usize) -> Value {
    let file = |number: usize| {
        let text = distinct_text(number, seed, bytes);
        (format!("assets/{number}.css"), json!({ "text": text }))
    };
    let mut files: Map<String, Value> = (1..count).map(file).collect();
    let page = distinct_text(0, seed, bytes);
    files.insert("index.html".to_owned(), json!({ "text": page }));
    Value::Object(files)
}

fn distinct_text(number: usize, seed: usize, bytes: usize) -> String {
    let mut text = format!("/* {seed} {number} */\n");
    let mut line = 0;
    while text.len() < bytes {
        line += 1;
        // A string takes any text.
        let _ = writeln!(
            text,
            ".c{line}-{number} {{ margin: {}px; color: #{:06x} }}",
            line * 7 % 64,
            (number + seed) * line * 7919 % 0xff_ffff
        );
    }
    text.truncate(bytes);
    text
}

/// Publishes files in requests that the server takes: first some, then the others by changes, all of them in one history.
fn publish(owner: &mut Owner, slug: &str, all: &Value) -> anyhow::Result<()> {
    let all = all.as_object().context("files")?;
    let entries: Vec<_> = all.iter().collect();
    let mut parts = entries.chunks(300);
    let first: Map<String, Value> = owned(parts.next().context("no files")?);
    let site = json!({ "type": "site", "requested_slug": slug, "files": first });
    owner.send("POST", "/frontends", &site)?;
    let mut live = live_revision(owner, slug)?;
    for part in parts {
        live = change(owner, slug, &live, &json!({ "set": owned(part) }))?.0;
    }
    Ok(())
}

fn live_revision(owner: &mut Owner, slug: &str) -> anyhow::Result<String> {
    let path = format!("/frontends/{slug}/revisions");
    let listed = owner.send("GET", &path, &json!({}))?.0;
    text(&listed, "active_revision_id")
}

fn owned(part: &[(&String, &Value)]) -> Map<String, Value> {
    let copied = part
        .iter()
        .map(|(path, file)| ((*path).clone(), (*file).clone()));
    copied.collect()
}

/// Makes a draft of changes live; returns its id, and the time of both requests.
fn change(
    owner: &mut Owner,
    slug: &str,
    live: &str,
    changes: &Value,
) -> anyhow::Result<(String, f64)> {
    let draft = json!({ "base_revision_id": live, "changes": changes });
    let path = format!("/frontends/{slug}/revisions");
    let (made, drafted) = owner.send("POST", &path, &draft)?;
    let id = text(&made["revision"], "revision_id")?;
    let promote = json!({ "revision_id": id, "expected_active_revision_id": live });
    let path = format!("/frontends/{slug}/promote");
    let (_, promoted) = owner.send("POST", &path, &promote)?;
    Ok((id, drafted + promoted))
}

fn measure_publications(owner: &mut Owner, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "Publishing {FILES} files of {} KB, and one of them anew",
        FILE_BYTES / 1024
    ))?;
    let all = files(FILES, FILE_BYTES, 1);
    let began = Instant::now();
    publish(owner, "thousand", &all)?;
    let whole = began.elapsed().as_secs_f64();
    print_line(&format!("all of them: {whole:.2} s"))?;
    goals.at_most("a thousand files: s", whole, 10.0);
    let mut live = live_revision(owner, "thousand")?;
    let mut took = Vec::new();
    for round in 0..ROUNDS {
        let changed = distinct_text(7, 100 + round, FILE_BYTES);
        let set = json!({ "set": { "assets/7.css": { "text": changed } } });
        let (next, time) = change(owner, "thousand", &live, &set)?;
        live = next;
        took.push(time);
    }
    print_line(&format!("one of them: p50 {:.1} ms", median(&took)))?;
    goals.at_most("one file of a thousand: p50, ms", median(&took), 300.0);
    Ok(())
}

/// Releases of sites of one file, and of many.
fn measure_releases(owner: &mut Owner, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "Releasing a site of one file, and of {MANY_FILES}, {ROUNDS} times"
    ))?;
    print_line(&format!(
        "{:16} {:>10} {:>12} {:>10}",
        "files", "promote ms", "roll back ms", "delete ms"
    ))?;
    for (slug, count) in [("small", 1), ("large", MANY_FILES)] {
        publish(owner, slug, &files(count, 64, 2))?;
        let first = live_revision(owner, slug)?;
        let (mut promoted, mut rolled_back, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let set = json!({ "set": { "index.html": { "text": format!("round {round}") } } });
            let draft = json!({ "base_revision_id": first, "changes": set });
            let revisions = format!("/frontends/{slug}/revisions");
            let draft = owner.send("POST", &revisions, &draft)?.0;
            let draft = text(&draft["revision"], "revision_id")?;
            let body = json!({ "revision_id": draft, "expected_active_revision_id": first });
            let promote = format!("/frontends/{slug}/promote");
            promoted.push(owner.send("POST", &promote, &body)?.1);
            let body = json!({ "revision_id": first, "expected_active_revision_id": draft });
            let roll_back = format!("/frontends/{slug}/rollback");
            rolled_back.push(owner.send("POST", &roll_back, &body)?.1);
            deleted.push(owner.delete(&format!("{revisions}/{draft}"))?);
        }
        print_line(&format!(
            "{count:16} {:>10.1} {:>12.1} {:>10.1}",
            median(&promoted),
            median(&rolled_back),
            median(&deleted)
        ))?;
        if count == MANY_FILES {
            for (what, took) in [
                ("promote", &promoted),
                ("roll back", &rolled_back),
                ("delete", &deleted),
            ] {
                let what = format!("{what} {MANY_FILES} files: p50, ms");
                goals.at_most(&what, median(took), 20.0);
            }
        }
    }
    Ok(())
}

/// Views of files beside those of a page, and of large files beside nginx.
fn measure_views(
    run: &Run,
    svc: &Running,
    owner: &mut Owner,
    goals: &mut Goals,
) -> anyhow::Result<()> {
    print_title(&format!(
        "Files of sites over {CONNECTIONS} keep-alive connections"
    ))?;
    print_head("file")?;
    let page = SourceGenerator::new(3).html(FILE_BYTES);
    let published = json!({ "type": "html", "content": page.clone(), "requested_slug": "page" });
    owner.send("POST", "/frontends", &published)?;
    let site = json!({ "page.html": { "text": page } });
    publish(owner, "file", &site)?;
    let page = [client::get(svc.address, "/page", "br")];
    let file = [client::get(svc.address, "/file/page.html", "br")];
    let missing = [client::get(svc.address, "/large/nothing.js", "br")];
    await_encoding(svc, "/file/page.html")?;
    for (case, requests, status, throughput, cost) in [
        ("10 KB", &file, 200, 0.95, 1.05),
        ("404 of many", &missing, 404, 0.9, f64::INFINITY),
    ] {
        let asked = Contender::new(svc, requests).answering(status);
        let contenders = [asked, Contender::new(svc, &page)];
        let [ours, theirs] = compare(&contenders, CONNECTIONS)?;
        ours.print(case, "file")?;
        theirs.print("", "page")?;
        print_ratio(&ours, &theirs, "ratio")?;
        let what = format!("{case}: throughput, of a page view");
        goals.at_least(&what, ours.ratio(&theirs), throughput);
        if cost.is_finite() {
            let what = format!("{case}: CPU, of a page view");
            goals.at_most(&what, ours.cost() / theirs.cost(), cost);
        }
    }
    let folder = run.bench.directory("large-files");
    std::fs::create_dir(&folder)?;
    let nginx = nginx::start(&run.bench, run.arguments.nginx.clone(), &folder)?;
    let Some(nginx) = nginx else {
        return print_line("nginx is not installed, or name it with --nginx.");
    };
    for (name, bytes) in [("1.bin", 1 << 20), ("10.bin", 10 << 20)] {
        let content: Vec<u8> = (0..bytes).map(|at: usize| (at * 31 % 251) as u8).collect();
        std::fs::write(folder.join(name), &content)?;
        // The server has closed a connection that was idle for as long as the rounds take.
        owner.reconnect(svc)?;
        owner.put_file(&format!("/frontends/file/files/{name}"), &content)?;
        let ours = [client::get(
            svc.address,
            &format!("/file/{name}"),
            "identity",
        )];
        let theirs = [client::get(nginx.address, &format!("/{name}"), "identity")];
        let contenders = [Contender::new(svc, &ours), Contender::new(&nginx, &theirs)];
        let [ours, theirs] = compare(&contenders, READERS)?;
        ours.print(name, "svc")?;
        theirs.print("", "nginx")?;
        print_ratio(&ours, &theirs, "ratio")?;
        let what = format!("{name}: throughput, of nginx's");
        goals.at_least(&what, ours.ratio(&theirs), 0.8);
    }
    measure_memory(svc, goals)
}

/// Waits until the encodings of a file are made, which happens behind its publication.
fn await_encoding(svc: &Running, path: &str) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut reader = svc.client()?;
    while !reader
        .get(path, "br")?
        .head
        .contains("content-encoding: br")
    {
        ensure!(
            began.elapsed() < Duration::from_secs(120),
            "the encodings of {path} are not made"
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// Memory that readers of a large file add.
fn measure_memory(svc: &Running, goals: &mut Goals) -> anyhow::Result<()> {
    svc.await_rest()?;
    let (before, _) = svc.memory()?;
    svc.reset_peak_memory()?;
    let file = [client::get(svc.address, "/file/10.bin", "identity")];
    load::run(svc.address, &file, CONNECTIONS, BESIDE)?;
    let (_, most) = svc.memory()?;
    print_line(&format!(
        "{CONNECTIONS} readers of 10 MB: {:.1} MB more at the most",
        most - before
    ))?;
    goals.at_most("readers of 10 MB: MB more", most - before, 64.0);
    Ok(())
}

/// Page views beside publications of many files.
fn measure_beside(svc: &Running, owner: &mut Owner, goals: &mut Goals) -> anyhow::Result<()> {
    let request = [client::get(svc.address, "/page", "br")];
    let quiet = load::run(svc.address, &request, VISITORS, BESIDE)?;
    let quiet = quantile(&quiet.latencies, 0.99) / 1e3;
    owner.reconnect(svc)?;
    let beside = std::thread::scope(|scope| {
        let publishing = scope.spawn(|| {
            let began = Instant::now();
            for number in 0..10 {
                let all = files(FILES, FILE_BYTES, 1_000 + number);
                publish(owner, &format!("beside-{number}"), &all)?;
            }
            anyhow::Ok(began.elapsed())
        });
        let beside = load::run(svc.address, &request, VISITORS, 4 * BESIDE);
        let took = publishing.join().ok().context("the publisher panicked")??;
        anyhow::Ok((beside?, took))
    })?;
    let (beside, took) = (quantile(&beside.0.latencies, 0.99) / 1e3, beside.1);
    print_line(&format!(
        "page views, p99: quiet {quiet:.2} ms, beside ten publications of {FILES} files ({:.0} ms each) {beside:.2} ms",
        millis(took) / 10.0
    ))?;
    goals.at_most("views beside publications: p99, ms", beside, 2.0 * quiet);
    Ok(())
}
