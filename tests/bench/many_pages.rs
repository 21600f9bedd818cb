//! Effect of the number of pages on starting and on page views: with a few pages and with very many.

use std::time::Duration;

use anyhow::ensure;
use rusqlite::Connection;

use super::report::{Goals, median, millis, print_line, print_title};
use super::rounds::{Contender, ROUND, ROUNDS, compare, print_head};
use super::server::{Bench, Running};
use super::source_generator::SourceGenerator;
use super::{client, load};

/// Numbers of pages.
const SIZES: [usize; 3] = [50, 5_000, 100_000];
/// Number of published pages; the others are copies under other slugs.
const PUBLISHED: usize = 50;
const BYTES: usize = 10 * 1024;
const STARTS: usize = 10;
const CONNECTIONS: usize = 64;
/// Time for which all pages are requested in turn.
const WALK_TIME: Duration = Duration::from_secs(5);
/// Megabytes that the cache of pages may take, and that a server takes besides.
const CACHE_MEGABYTES: f64 = 32.0;
const OTHER_MEGABYTES: f64 = 64.0;

/// Measures starts and views.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_title(&format!(
        "With few and with many pages of 10 KB: medians of {STARTS} starts; views of the same {PUBLISHED} pages, {ROUNDS} alternating rounds of {} ms",
        ROUND.as_millis()
    ))?;
    print_line(&format!(
        "{:>16} {:>10} {:>10}",
        "pages", "ready ms", "page ms"
    ))?;
    let mut ready = Vec::new();
    for size in SIZES {
        let data = format!("many-{size}");
        add_pages(bench, &data, size)?;
        let (mut line, mut page) = (Vec::new(), Vec::new());
        for _ in 0..STARTS {
            let svc = bench.start_svc(&data)?;
            line.push(millis(svc.ready_after));
            let answer = svc.client()?.get("/page-0", "br")?;
            ensure!(answer.status == 200, "not served: {answer:?}");
            page.push(millis(svc.began.elapsed()));
            svc.await_guests()?;
        }
        print_line(&format!(
            "{size:>16} {:>10.1} {:>10.1}",
            median(&line),
            median(&page)
        ))?;
        ready.push(median(&page));
    }
    let apart = ready.iter().copied().fold(f64::MIN, f64::max)
        - ready.iter().copied().fold(f64::MAX, f64::min);
    goals.at_most("starts with few and many pages, ms apart", apart, 50.0);
    measure_views(bench, goals)
}

fn measure_views(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    print_line("")?;
    print_head("pages")?;
    let servers: Vec<Running> = SIZES
        .iter()
        .map(|size| {
            let svc = bench.start_svc(&format!("many-{size}"))?;
            svc.await_guests()?;
            Ok(svc)
        })
        .collect::<anyhow::Result<_>>()?;
    let requests: Vec<Vec<Vec<u8>>> = servers
        .iter()
        .map(|svc| {
            let page = |number| client::get(svc.address, &format!("/page-{number}"), "br");
            (0..PUBLISHED).map(page).collect()
        })
        .collect();
    let contender = |at: usize| Contender::new(&servers[at], &requests[at]);
    let figures = compare(&[contender(0), contender(1), contender(2)], CONNECTIONS)?;
    for (size, figures) in SIZES.iter().zip(&figures) {
        figures.print(&size.to_string(), "svc")?;
    }
    for (size, many) in SIZES.iter().zip(&figures).skip(1) {
        let what = format!(
            "views with {size} pages: throughput, of that with {}",
            SIZES[0]
        );
        goals.at_least(&what, many.ratio(&figures[0]), 0.9);
    }
    let most = SIZES.len() - 1;
    let svc = &servers[most];
    let all: Vec<Vec<u8>> = (PUBLISHED..SIZES[most])
        .map(|number| client::get(svc.address, &format!("/page-{number}"), "br"))
        .collect();
    let walked = load::run(svc.address, &all, CONNECTIONS, WALK_TIME)?;
    let (now, peak) = svc.memory()?;
    print_line(&format!(
        "\n{:.0} views/s of pages that nobody has asked for before; svc after it: {now:.1} MB resident, {peak:.1} MB at the most.",
        walked.rate
    ))?;
    goals.at_most(
        "with many pages: peak memory, MB",
        peak,
        CACHE_MEGABYTES + OTHER_MEGABYTES,
    );
    Ok(())
}

/// Publishes some pages, and adds the rows of the others: publishing each would take minutes.
fn add_pages(bench: &Bench, data: &str, size: usize) -> anyhow::Result<()> {
    let svc = bench.start_svc(data)?;
    svc.await_guests()?;
    let mut client = svc.client()?;
    let mut author = SourceGenerator::new(11);
    for number in 0..PUBLISHED {
        let share =
            serde_json::json!({ "name": format!("page-{number}"), "content": author.html(BYTES) });
        let answer = client.post("/api/v1/deploy", &share)?;
        ensure!(answer.status == 201, "not published: {answer:?}");
    }
    drop(svc);
    let mut control = Connection::open(bench.directory(data).join("control.db"))?;
    let columns: Vec<String> = control
        .prepare("SELECT name FROM pragma_table_info('deployments')")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let copied: Vec<String> = columns
        .iter()
        .map(|column| match column.as_str() {
            "id" => "substr(id, 1, 28) || printf('%08x', n.value)".to_owned(),
            "slug" => "'page-' || n.value".to_owned(),
            other => format!("\"{other}\""),
        })
        .collect();
    let names: Vec<String> = columns.iter().map(|name| format!("\"{name}\"")).collect();
    let insert = format!(
        "WITH RECURSIVE n (value) AS (SELECT ?1 UNION ALL SELECT value + 1 FROM n WHERE value + 1 < ?2)
         INSERT INTO deployments ({}) SELECT {} FROM n JOIN deployments ON slug = 'page-' || (n.value % ?1)",
        names.join(", "),
        copied.join(", ")
    );
    if size > PUBLISHED {
        let tx = control.transaction()?;
        tx.execute(&insert, (i64::try_from(PUBLISHED)?, i64::try_from(size)?))?;
        tx.commit()?;
    }
    Ok(())
}
