//! Ten thousand databases on one server: starting, memory, calls of databases that are not open, eviction, files, backup and check.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;

use super::background_load::BackgroundLoad;
use super::client::Client;
use super::neighbours;
use super::owner::Owner;
use super::report::{Goals, median, millis, print_line, print_title, quantile};
use super::server::{Bench, Running};
use super::{items, load, tenant};

/// Number of databases, unless the arguments give another.
const DATABASES: usize = 10_000;
/// Databases that are open at once.
const OPEN: usize = 1_000;
/// Clients that create databases.
const CREATORS: usize = 4;
const STARTS: usize = 5;
/// Connections whose calls open databases.
const CONNECTIONS: usize = 4;
const RUNS: usize = 5;
/// One call of so many inserts a row.
const INSERT_STEP: usize = 10;
/// Bounds, in megabytes and in open files.
const IDLE_MEMORY: f64 = 256.0;
const USED_MEMORY: f64 = 512.0;
const FILES: usize = 20_000;
/// Pause between looks at the memory of a command.
const LOOK: Duration = Duration::from_millis(20);

/// Measures a server with very many databases.
pub(crate) fn measure(
    bench: &Bench,
    databases: Option<usize>,
    goals: &mut Goals,
) -> anyhow::Result<()> {
    let databases = databases.unwrap_or(DATABASES);
    print_title(&format!(
        "{databases} databases of {} rows, {OPEN} of them open at once",
        items::ROWS
    ))?;
    let bench = bench.with_more_settings(
        "density",
        &format!("backends = {}\nopen_databases = {OPEN}\n", databases + 1),
    )?;
    let (svc, credential) = bench.start_owned("density")?;
    let began = Instant::now();
    create_all(&svc, &credential, databases)?;
    print_line(&format!(
        "made in {:.0} s, {:.1} ms each",
        began.elapsed().as_secs_f64(),
        millis(began.elapsed()) / databases as f64
    ))?;
    drop(svc);
    let svc = measure_starts(&bench, goals)?;
    measure_cold_calls(&svc, databases, goals)?;
    measure_neighbours(&svc, databases, goals)?;
    measure_command(&bench, &svc, &["backup"], goals)?;
    measure_command(&bench, &svc, &["check"], goals)
}

fn slug_of(number: usize) -> String {
    format!("tenant-{number}")
}

fn create_all(svc: &Running, credential: &str, databases: usize) -> anyhow::Result<()> {
    thread::scope(|scope| {
        let creators: Vec<_> = (0..CREATORS)
            .map(|creator| {
                scope.spawn(move || {
                    let mut owner = Owner::new(svc, credential)?;
                    (creator..databases)
                        .step_by(CREATORS)
                        .try_for_each(|number| {
                            tenant::create_tenant(&mut owner, &slug_of(number), &[])
                        })
                })
            })
            .collect();
        creators
            .into_iter()
            .try_for_each(|creator| creator.join().ok().context("a creator panicked")?)
    })?;
    let mut owner = Owner::new(svc, credential)?;
    tenant::create_tenant(&mut owner, neighbours::QUIET, &[])
}

/// Starts the server some times; returns the last one, at rest.
fn measure_starts(bench: &Bench, goals: &mut Goals) -> anyhow::Result<Running> {
    let start = || bench.start_svc("density");
    let mut svc = start()?;
    let mut ready = vec![millis(svc.ready_after)];
    for _ in 1..STARTS {
        drop(svc);
        svc = start()?;
        ready.push(millis(svc.ready_after));
    }
    svc.await_guests()?;
    svc.await_rest()?;
    let (ready, (memory, most)) = (median(&ready), svc.memory()?);
    print_line(&format!(
        "ready after {ready:.0} ms; at rest {memory:.0} MB resident, {most:.0} MB at the most"
    ))?;
    goals.at_most("many databases: ready, ms", ready, 1_000.0);
    goals.at_most("many databases: memory at rest, MB", memory, IDLE_MEMORY);
    Ok(svc)
}

/// A read of one row of each of some databases.
fn reads(svc: &Running, numbers: impl Iterator<Item = usize>) -> Vec<Vec<u8>> {
    let read = |number| items::call(svc.address, &slug_of(number), "row", &json!({ "id": 1 }));
    numbers.map(read).collect()
}

/// Sends each request once over some connections; returns the milliseconds that each took.
fn send_once(svc: &Running, requests: &[Vec<u8>], connections: usize) -> anyhow::Result<Vec<f64>> {
    let each = requests.len().div_ceil(connections).max(1);
    thread::scope(|scope| {
        let senders: Vec<_> = requests
            .chunks(each)
            .map(|requests| {
                scope.spawn(move || {
                    let mut client = svc.client()?;
                    let send = |request: &Vec<u8>| {
                        let began = Instant::now();
                        let answer = client.send(request)?;
                        let said = || String::from_utf8_lossy(&answer.body).into_owned();
                        ensure!(answer.status == 200, "{}", said());
                        Ok(millis(began.elapsed()))
                    };
                    requests
                        .iter()
                        .map(send)
                        .collect::<anyhow::Result<Vec<f64>>>()
                })
            })
            .collect();
        let mut took = Vec::with_capacity(requests.len());
        for sender in senders {
            took.extend(sender.join().ok().context("a client panicked")??);
        }
        Ok(took)
    })
}

/// Calls of databases that are not open, and the memory and the files when as many are open as may be.
fn measure_cold_calls(svc: &Running, databases: usize, goals: &mut Goals) -> anyhow::Result<()> {
    let cold = reads(svc, 0..OPEN.min(databases));
    let (alone, together) = cold.split_at(cold.len() / 2);
    for (requests, connections) in [(alone, 1), (together, CONNECTIONS)] {
        let took = send_once(svc, requests, connections)?;
        let (half, most) = (quantile(&took, 0.5), quantile(&took, 0.99));
        print_line(&format!(
            "a call of a database that is not open, {connections} at once: p50 {half:.2} ms, p99 {most:.2} ms"
        ))?;
        if connections == 1 {
            goals.at_most("many databases: a cold call, p99, ms", most, 5.0);
        }
    }
    let inserts: Vec<_> = (0..OPEN.min(databases))
        .map(|number| items::call(svc.address, &slug_of(number), "insert", &items::new_row()))
        .collect();
    let took = send_once(svc, &inserts, CONNECTIONS)?;
    print_line(&format!(
        "a first insert into each: p50 {:.2} ms, p99 {:.2} ms",
        quantile(&took, 0.5),
        quantile(&took, 0.99)
    ))?;
    print_use(svc, &format!("{OPEN} in use"), goals)
}

fn print_use(svc: &Running, what: &str, goals: &mut Goals) -> anyhow::Result<()> {
    let ((memory, most), files) = (svc.memory()?, svc.open_files()?);
    print_line(&format!(
        "{what}: {memory:.0} MB resident, {most:.0} MB at the most; {files} open files"
    ))?;
    goals.at_most(
        &format!("many databases, {what}: memory, MB"),
        memory,
        USED_MEMORY,
    );
    goals.at_most(
        &format!("many databases, {what}: open files"),
        files as f64,
        FILES as f64,
    );
    Ok(())
}

/// Calls of one tenant, alone and while clients call one database after the other, so that each call closes one and opens another.
fn measure_neighbours(svc: &Running, databases: usize, goals: &mut Goals) -> anyhow::Result<()> {
    let mut requests = reads(svc, 0..databases);
    for (number, request) in requests.iter_mut().enumerate().step_by(INSERT_STEP) {
        *request = items::call(svc.address, &slug_of(number), "insert", &items::new_row());
    }
    let next = std::sync::atomic::AtomicUsize::new(0);
    let send_request = |client: &mut Client| {
        let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let answer = client.send(&requests[number % requests.len()])?;
        ensure!(answer.status == 200, "a call was {answer:?}");
        Ok(())
    };
    let opening = BackgroundLoad {
        clients: CONNECTIONS,
        ahead: Duration::from_millis(500),
    };
    let (mut quiet, mut beside) = (
        neighbours::Figures::default(),
        neighbours::Figures::default(),
    );
    for _ in 0..RUNS {
        neighbours::measure_operations(svc, &mut quiet)?;
        let measured = || neighbours::measure_operations(svc, &mut beside);
        opening.run_during(svc, send_request, measured)?;
        svc.await_rest()?;
    }
    neighbours::print_beside(&quiet, &[("opening databases", &beside)], goals)?;
    let took = load::run(svc.address, &requests, CONNECTIONS, Duration::from_secs(5))?;
    print_line(&format!(
        "one database after the other: {:.0} calls/s, p99 {:.2} ms",
        took.rate,
        quantile(&took.latencies, 0.99) / 1e3
    ))?;
    print_use(svc, "after all were in use", goals)
}

/// Runs a command on all databases, beside the server.
fn measure_command(
    bench: &Bench,
    svc: &Running,
    words: &[&str],
    goals: &mut Goals,
) -> anyhow::Result<()> {
    svc.await_rest()?;
    svc.reset_peak_memory()?;
    let mut command: Command = bench.command("density", words);
    if words == ["backup"] {
        command.arg(bench.directory("density-backup"));
    }
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let mut child = command.spawn()?;
    let mut most = 0.0_f64;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        most = super::server::peak_memory_of(child.id()).map_or(most, |now| most.max(now));
        thread::sleep(LOOK);
    };
    let word = words.join(" ");
    ensure!(status.success(), "svc {word}: {status}");
    let of_server = svc.memory()?.1;
    print_line(&format!(
        "svc {word}: {:.1} s, {most:.0} MB at the most, and the server {of_server:.0} MB",
        began.elapsed().as_secs_f64()
    ))?;
    goals.at_most(
        &format!("many databases: memory of svc {word}, MB"),
        most,
        IDLE_MEMORY,
    );
    goals.at_most(
        &format!("many databases: memory of the server beside svc {word}, MB"),
        of_server,
        USED_MEMORY,
    );
    Ok(())
}
