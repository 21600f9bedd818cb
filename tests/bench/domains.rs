//! Domains of projects: views on one beside views on the project's origin, and the cost of a thousand of them.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use svc_tests::dns::DnsServer;

use super::client;
use super::owner::{Owner, text};
use super::report::{Goals, print_line, print_title};
use super::rounds::{Contender, compare, print_head, print_ratio};
use super::server::{Bench, Running};
use super::source_generator::SourceGenerator;

const PAGE_BYTES: usize = 10 * 1024;
const CONNECTIONS: usize = 64;
const DOMAINS: u32 = 1_000;
/// Projects that have them.
const PROJECTS: u32 = 10;
/// Time for which a server at rest is looked at.
const REST: Duration = Duration::from_secs(20);
/// Seconds between two checks of an active domain.
const CHECKED_EVERY: f64 = 24.0 * 60.0 * 60.0;

/// Measures domains.
pub(crate) fn measure(bench: &Bench, goals: &mut Goals) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let dns = runtime.block_on(DnsServer::start());
    let (svc, credential) = bench.start_owned_with_domains("domains", dns.address())?;
    let mut owner = Owner::new(&svc, &credential)?;
    measure_views(&svc, &mut owner, &dns, goals)?;
    measure_many(&svc, &credential, &dns, goals)
}

/// Adds a domain to the owner's project, and proves it.
fn prove(owner: &mut Owner, dns: &DnsServer, name: &str) -> anyhow::Result<()> {
    let added = owner.send("POST", "/domains", &json!({ "name": name }))?.0;
    let records = added["records"].as_array().context("no records")?;
    dns.set_record(records.first().context("no record")?);
    owner.send("POST", &format!("/domains/{name}/verify"), &json!({}))?;
    Ok(())
}

/// Views of one page, on a domain and on the project's origin.
fn measure_views(
    svc: &Running,
    owner: &mut Owner,
    dns: &DnsServer,
    goals: &mut Goals,
) -> anyhow::Result<()> {
    print_title(&format!(
        "A page of 10 KB on a domain, over {CONNECTIONS} keep-alive connections"
    ))?;
    owner.create_project("Views")?;
    let page = SourceGenerator::new(5).html(PAGE_BYTES);
    let published = json!({ "type": "html", "content": page, "requested_slug": "page" });
    let published = owner.send("POST", "/frontends", &published)?.0;
    let url = text(&published, "url")?;
    let origin = url.split('/').nth(2).context("a url without a host")?;
    prove(owner, dns, "www.shop.com")?;
    let domain = [client::get_at("www.shop.com", "/page", "br")];
    let origin = [client::get_at(origin, "/page", "br")];
    print_head("host")?;
    let contenders = [Contender::new(svc, &domain), Contender::new(svc, &origin)];
    let [ours, theirs] = compare(&contenders, CONNECTIONS)?;
    ours.print("10 KB", "domain")?;
    theirs.print("", "origin")?;
    print_ratio(&ours, &theirs, "ratio")?;
    let what = "a page on a domain: throughput, of one on the origin";
    goals.at_least(what, ours.ratio(&theirs), 0.97);
    Ok(())
}

/// Share of a core that a server at rest takes.
fn idle_share(svc: &Running) -> anyhow::Result<f64> {
    let before = svc.cpu()?;
    std::thread::sleep(REST);
    Ok((svc.cpu()? - before).as_secs_f64() / REST.as_secs_f64())
}

/// Memory and processor time of many domains.
fn measure_many(
    svc: &Running,
    credential: &str,
    dns: &DnsServer,
    goals: &mut Goals,
) -> anyhow::Result<()> {
    print_title(&format!("{DOMAINS} domains of {PROJECTS} projects"))?;
    let mut owner = Owner::new(svc, credential)?;
    owner.create_project("Warm")?;
    for number in 0..DOMAINS / PROJECTS {
        prove(&mut owner, dns, &format!("warm-{number}.shop.com"))?;
    }
    svc.await_rest()?;
    let without = idle_share(svc)?;
    owner.reconnect(svc)?;
    let ((before, _), began) = (svc.memory()?, svc.cpu()?);
    for project in 0..PROJECTS {
        owner.create_project(&format!("Shop {project}"))?;
        for number in 0..DOMAINS / PROJECTS {
            prove(&mut owner, dns, &format!("n{number}.p{project}.com"))?;
        }
    }
    let proven = (svc.cpu()? - began).as_secs_f64() * 1e3 / f64::from(DOMAINS);
    svc.await_rest()?;
    let (after, _) = svc.memory()?;
    let memory = (after - before) * 1024.0 / f64::from(DOMAINS);
    let idle = (idle_share(svc)? - without).max(0.0);
    // Adding, proving and answering are in it, so a check alone costs less.
    let checks = proven / 1e3 * f64::from(DOMAINS) / CHECKED_EVERY;
    print_line(&format!(
        "a domain: {proven:.2} ms of processor time until it is proven, {memory:.2} KB of memory"
    ))?;
    print_line(&format!(
        "a server at rest: {:.2} % of a core more with them, and {:.4} % for their checks of each day",
        idle * 100.0,
        checks * 100.0
    ))?;
    goals.at_most("a domain of a thousand: KB of memory", memory, 2.0);
    let all = (idle + checks) * 100.0;
    goals.at_most("a thousand domains: % of a core", all, 0.5);
    Ok(())
}
