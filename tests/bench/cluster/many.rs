//! Many databases: a restore of all, loads of large ones by a node that has none, those that nobody uses, and claims of these.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;

use super::super::history::FILL;
use super::super::items;
use super::super::owner::Owner;
use super::super::report::{millis, print_line, quantile};
use super::super::server::Running;
use super::super::tenant;
use super::site::{Node, Site};
use super::{Bars, spread};

/// Databases that are restored: those of the inserts, those of 5 MB, and others of 1 MB.
const RESTORED: usize = 250;
const LARGE: usize = 24;
/// Databases that nobody uses.
const IDLE: usize = 1_000;
/// Databases that are created at a time.
const MAKERS: usize = 4;
/// Time without a call after which a database is idle.
const REST: Duration = Duration::from_secs(65);
/// Time for which idle databases are watched.
const WATCH: Duration = Duration::from_secs(10);

/// Databases that live nodes have, the installation's own left out.
const PLACES: &str = "SELECT count(*) FROM svc.places p JOIN svc.nodes n ON n.run = p.run WHERE n.live AND p.db <> 'control'";
/// Commits that there ever were, the installation's own left out.
const COMMITS: &str = "SELECT coalesce(sum(last), 0)::bigint FROM (SELECT max(commit) AS last FROM svc.commits WHERE db <> 'control' GROUP BY db) one";

/// Makes a database whose page has this slug.
type Make = fn(&Running, &mut Owner, &str) -> anyhow::Result<()>;

/// Measures all of it, and ends the node.
pub(super) fn measure(
    site: &Site<'_>,
    node: Node,
    credential: &str,
    bars: &mut Bars<'_>,
) -> anyhow::Result<()> {
    let large: Vec<String> = (0..LARGE).map(|number| format!("large-{number}")).collect();
    make_all(&node.svc, credential, &large, make_large)?;
    let usual: Vec<String> = (LARGE + 1 + spread::DATABASES..RESTORED)
        .map(|number| format!("usual-{number}"))
        .collect();
    make_all(&node.svc, credential, &usual, make_usual)?;
    measure_restore(site, bars)?;
    let node = measure_loads(site, node, &large, bars)?;
    let idle: Vec<String> = (RESTORED..IDLE)
        .map(|number| format!("idle-{number}"))
        .collect();
    make_all(&node.svc, credential, &idle, make_small)?;
    measure_idle(site, bars)?;
    measure_claims(site, &large, bars)
}

fn make_all(svc: &Running, credential: &str, slugs: &[String], make: Make) -> anyhow::Result<()> {
    thread::scope(|scope| {
        let makers: Vec<_> = slugs
            .chunks(slugs.len().div_ceil(MAKERS))
            .map(|share| {
                scope.spawn(move || {
                    let mut owner = Owner::new(svc, credential)?;
                    share
                        .iter()
                        .try_for_each(|slug| make(svc, &mut owner, slug))
                })
            })
            .collect();
        makers
            .into_iter()
            .try_for_each(|maker| maker.join().ok().context("a maker panicked")?)
    })
}

fn make_large(svc: &Running, owner: &mut Owner, slug: &str) -> anyhow::Result<()> {
    tenant::create_tenant(owner, slug, &[("fill", FILL)])?;
    let fill = items::call(svc.address, slug, "fill", &json!({}));
    tenant::call_json(svc, &fill).map(drop)
}

fn make_usual(_: &Running, owner: &mut Owner, slug: &str) -> anyhow::Result<()> {
    tenant::create_tenant(owner, slug, &[])
}

fn make_small(_: &Running, owner: &mut Owner, slug: &str) -> anyhow::Result<()> {
    owner.create_project(slug)?;
    let ddl = json!({ "ddl": items::SCHEMA });
    owner.send("POST", "/backend", &ddl).map(drop)
}

/// Restores everything onto one machine, with the ledger.
fn measure_restore(site: &Site<'_>, bars: &mut Bars<'_>) -> anyhow::Result<()> {
    let began = Instant::now();
    let restored = site.restore("cluster-restored")?;
    let took = began.elapsed().as_secs_f64();
    let databases = restored["databases"].as_array().map_or(0, Vec::len);
    // The installation's own is one, too.
    let is_whole = restored["complete"] == true && databases == RESTORED + 1;
    ensure!(is_whole, "not restored: {restored}");
    let content = &restored["content"];
    print_line(&format!(
        "Restore of {RESTORED} databases: {took:.1} s; content: {content}"
    ))?;
    bars.at_most("restore of 250 databases with the ledger, s", took, 30.0);
    Ok(())
}

/// Has a node with an empty disk take over, and calls each large database for the first time.
fn measure_loads(
    site: &Site<'_>,
    node: Node,
    slugs: &[String],
    bars: &mut Bars<'_>,
) -> anyhow::Result<Node> {
    let next = site.start_serving()?;
    node.lose()?;
    next.wait_for_control()?;
    next.wait_until_ready()?;
    let places = site.number(PLACES)?;
    print_line(&format!(
        "After a takeover, before the first call: {places} places."
    ))?;
    let last = call_first(&next, slugs, "after a takeover")?;
    bars.at_most("first call of a 5 MB database: p99, ms", last, 150.0);
    Ok(next)
}

/// Has a node with an empty disk claim large databases that nobody has, each by its first call.
fn measure_claims(site: &Site<'_>, slugs: &[String], bars: &mut Bars<'_>) -> anyhow::Result<()> {
    let next = site.start_serving()?;
    let last = call_first(&next, slugs, "at a node that has nothing")?;
    let claimed = site.places(&next)?;
    print_line(&format!("The node has {claimed} databases then."))?;
    bars.at_most("cold claim of a 5 MB database: p99, ms", last, 150.0);
    Ok(())
}

/// Calls databases for the first time at a node; returns the p99 in milliseconds.
fn call_first(node: &Node, slugs: &[String], when: &str) -> anyhow::Result<f64> {
    // One connection, and a call that loads nothing large, come first.
    let mut client = node.svc.client()?;
    let mut took = Vec::new();
    for slug in [super::SLUG]
        .into_iter()
        .chain(slugs.iter().map(String::as_str))
    {
        let call = items::call(node.svc.address, slug, "row", &json!({ "id": 1 }));
        let began = Instant::now();
        let answer = client.send(&call)?;
        let elapsed = millis(began.elapsed());
        ensure!(answer.status == 200, "a first call was answered {answer:?}");
        if slug != super::SLUG {
            took.push(elapsed);
        }
    }
    let (middle, last) = (quantile(&took, 0.5), quantile(&took, 0.99));
    print_line(&format!(
        "First call of {LARGE} databases of 5 MB {when}: p50 {middle:.1} ms, p99 {last:.1} ms"
    ))?;
    Ok(last)
}

/// Lets all databases rest, and looks at what the ledger has of them.
fn measure_idle(site: &Site<'_>, bars: &mut Bars<'_>) -> anyhow::Result<()> {
    thread::sleep(REST);
    let before = site.number(COMMITS)?;
    thread::sleep(WATCH);
    let (appended, places) = (site.number(COMMITS)? - before, site.number(PLACES)?);
    let rest = REST.as_secs();
    bars.at_most(
        &format!("{IDLE} databases idle for {rest} s: places"),
        places as f64,
        0.0,
    );
    let watch = WATCH.as_secs();
    bars.at_most(
        &format!("{IDLE} idle databases: commits in {watch} s"),
        appended as f64,
        0.0,
    );
    Ok(())
}
