//! Nodes of one installation beside a server of one machine and a bare client of the ledger: PostgreSQL with two standbys that it waits
//! for, all on one machine, in one run and in turns.

mod appends;
mod followers;
mod inserts;
mod many;
mod site;
mod spread;
mod takeovers;

use anyhow::ensure;
use serde_json::json;

use super::Run;
use super::client;
use super::items::Operation;
use super::owner::Owner;
use super::report::{Goals, print_line, print_title};
use super::rounds::{Contender, ROUND, ROUNDS, compare, print_head, print_ratio};
use super::server::{Bench, Running};
use super::source_generator::SourceGenerator;
use super::tenant;
use site::Site;

/// Page of the tenant that is written and read.
const SLUG: &str = "items";
/// Name and size of the page that is viewed.
const PAGE: &str = "page";
const PAGE_BYTES: usize = 10 * 1024;
/// Connections that read.
const CONNECTIONS: usize = 64;
/// Number of takeovers, unless the command line names another.
const TAKEOVERS: usize = 10;

/// Figures with their bars, in a table of their own.
struct Bars<'g> {
    goals: &'g mut Goals,
    rows: Vec<String>,
}

impl Bars<'_> {
    fn at_most(&mut self, figure: &str, measured: f64, most: f64) {
        self.goals.at_most(figure, measured, most);
        self.add_row(figure, &format!("≤ {most:.2}"), measured, measured <= most);
    }

    fn at_least(&mut self, figure: &str, measured: f64, least: f64) {
        self.goals.at_least(figure, measured, least);
        self.add_row(
            figure,
            &format!("≥ {least:.2}"),
            measured,
            measured >= least,
        );
    }

    /// Adds a figure that has no bar here.
    fn note(&mut self, figure: &str, measured: f64) {
        self.rows
            .push(format!("{figure:52} {:>9} {measured:>9.2}", "none"));
    }

    fn add_row(&mut self, figure: &str, bar: &str, measured: f64, reached: bool) {
        let verdict = if reached { "ok" } else { "missed" };
        self.rows
            .push(format!("{figure:52} {bar:>9} {measured:>9.2}  {verdict}"));
    }

    fn print(&self) -> anyhow::Result<()> {
        print_line(&format!("\n{:52} {:>9} {:>9}", "figure", "bar", "measured"))?;
        self.rows.iter().try_for_each(|row| print_line(row))
    }
}

/// Measures one node alone, then three, of which some are killed, and what a node has that takes over.
pub(crate) fn measure(run: &Run, goals: &mut Goals) -> anyhow::Result<()> {
    if !svc_tests::postgres::is_installed() {
        return print_line("\nPostgreSQL is not installed: no node of several is measured.");
    }
    print_title(&format!(
        "Nodes of one installation, {ROUNDS} alternating rounds of {} ms; embedded is a server of one machine, bare a client of the ledger alone",
        ROUND.as_millis()
    ))?;
    let mut bars = Bars {
        goals,
        rows: Vec::new(),
    };
    let takeovers = run.arguments.takeovers.unwrap_or(TAKEOVERS);
    let measured = measure_all(&run.bench, takeovers, &mut bars);
    bars.print()?;
    measured
}

fn measure_all(bench: &Bench, takeovers: usize, bars: &mut Bars<'_>) -> anyhow::Result<()> {
    let (embedded, credential) = bench.start_owned("cluster-embedded")?;
    prepare(&embedded, &credential)?;
    let site = Site::found(bench)?;
    let node = site.start_serving()?;
    let credential = bench.create_namespace(&node.data)?;
    prepare(&node.svc, &credential)?;
    inserts::measure(&site, &node.svc, &embedded, bars)?;
    measure_reads(&node.svc, &embedded, bars)?;
    let unfollowed = followers::publish_unfollowed(&node.svc)?;
    let others = vec![site.start_serving()?, site.start_serving()?];
    followers::measure_reads(&node.svc, &others[0].svc, &embedded, bars)?;
    let pair = (&node.svc, &others[0].svc);
    followers::measure_publications(pair, &embedded, &unfollowed, bars)?;
    drop(embedded);
    let mut nodes = followers::measure_deaths(&site, &node, others, bars)?;
    nodes.push(node);
    let nodes = takeovers::measure(&site, nodes, (credential.as_str(), takeovers), bars)?;
    let mut nodes = spread::measure(&site, nodes, &credential, bars)?;
    let node = site.take_owner(&mut nodes)?;
    drop(nodes);
    many::measure(&site, node, &credential, bars)
}

/// Makes the tenant, and publishes the page.
fn prepare(svc: &Running, credential: &str) -> anyhow::Result<()> {
    tenant::create_tenant(&mut Owner::new(svc, credential)?, SLUG, &[])?;
    let content = SourceGenerator::new(1).html(PAGE_BYTES);
    let share = json!({ "name": PAGE, "content": content });
    let published = svc.client()?.post("/api/v1/deploy", &share)?;
    ensure!(published.status == 201, "not published: {published:?}");
    Ok(())
}

/// Compares reads while nothing is written.
fn measure_reads(node: &Running, embedded: &Running, bars: &mut Bars<'_>) -> anyhow::Result<()> {
    print_head("read")?;
    let rows = |svc: &Running| Operation::Row.calls(svc.address, SLUG);
    let page = |svc: &Running| vec![client::get(svc.address, &format!("/{PAGE}"), "identity")];
    for (case, ours, theirs) in [
        ("row by key", rows(node), rows(embedded)),
        ("page 10 KB", page(node), page(embedded)),
    ] {
        let contenders = [
            Contender::new(node, &ours),
            Contender::new(embedded, &theirs),
        ];
        let [ours, theirs] = compare(&contenders, CONNECTIONS)?;
        ours.print(case, "node")?;
        theirs.print("", "embedded")?;
        print_ratio(&ours, &theirs, "ratio")?;
        let figure = format!("{case}: throughput, of embedded");
        bars.at_least(&figure, ours.ratio(&theirs), 0.97);
    }
    Ok(())
}
