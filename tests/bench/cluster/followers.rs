//! Followers beside the node that has control: reads through them, pages of theirs, publications that wait for them, and their deaths.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use serde_json::json;

use super::super::client::{self, Client};
use super::super::items::Operation;
use super::super::report::{millis, print_line, quantile};
use super::super::rounds::{Contender, compare, print_head, print_ratio};
use super::super::server::Running;
use super::super::source_generator::SourceGenerator;
use super::site::{Node, Site};
use super::{Bars, CONNECTIONS, PAGE, PAGE_BYTES, SLUG};

/// Publications that are measured, and those before.
const PUBLICATIONS: usize = 200;
const WARM_UP: usize = 10;
/// Followers that are killed.
const DEATHS: usize = 3;
/// Time for which is published before a death, and after it: longer than a node waits until it buries another one.
const BEFORE_DEATH: Duration = Duration::from_secs(1);
const AFTER_DEATH: Duration = Duration::from_secs(8);
/// Pause between two requests for a page, and the time after which there is no other.
const PAUSE: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(10);

/// Measures reads of a row through a follower, and of a page that it has.
pub(super) fn measure_reads(
    owner: &Running,
    follower: &Running,
    embedded: &Running,
    bars: &mut Bars<'_>,
) -> anyhow::Result<()> {
    print_line("")?;
    print_head("at a follower")?;
    let rows = [follower, owner].map(|svc| Operation::Row.calls(svc.address, SLUG));
    for connections in [1, CONNECTIONS] {
        let contenders = [
            Contender::new(follower, &rows[0]),
            Contender::new(owner, &rows[1]),
        ];
        let [through, direct] = compare(&contenders, connections)?;
        through.print(&format!("row by key, {connections}"), "follower")?;
        direct.print("", "owner")?;
        print_ratio(&through, &direct, "ratio")?;
        if connections == 1 {
            let more = through.p50() - direct.p50();
            bars.at_most("row by key through another node: p50, ms more", more, 1.5);
        }
    }
    let pages = [follower, embedded]
        .map(|svc| vec![client::get(svc.address, &format!("/{PAGE}"), "identity")]);
    let contenders = [
        Contender::new(follower, &pages[0]),
        Contender::new(embedded, &pages[1]),
    ];
    let [ours, theirs] = compare(&contenders, CONNECTIONS)?;
    ours.print("page 10 KB", "follower")?;
    theirs.print("", "embedded")?;
    print_ratio(&ours, &theirs, "ratio")?;
    let figure = "page 10 KB at a follower: throughput, of embedded";
    bars.at_least(figure, ours.ratio(&theirs), 0.97);
    Ok(())
}

/// Publishes pages one after the other at a node that nobody follows; returns the milliseconds of each.
pub(super) fn publish_unfollowed(node: &Running) -> anyhow::Result<Vec<f64>> {
    let mut publisher = Publisher::new(node, 11)?;
    let mut took = Vec::new();
    for number in 0..WARM_UP + PUBLICATIONS {
        let publication = publisher.publish(&format!("alone-{number}"))?;
        if number >= WARM_UP {
            took.push(publication);
        }
    }
    Ok(took)
}

/// Measures publications one after the other, of which each waits for the followers, and looks at each page at a follower at once.
/// `unfollowed` are the times of those before.
pub(super) fn measure_publications(
    (owner, follower): (&Running, &Running),
    embedded: &Running,
    unfollowed: &[f64],
    bars: &mut Bars<'_>,
) -> anyhow::Result<()> {
    let mut ours = Publisher::new(owner, 12)?;
    let mut theirs = Publisher::new(embedded, 12)?;
    let mut reader = follower.client()?;
    let (mut shared, mut alone, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..WARM_UP + PUBLICATIONS {
        let name = format!("news-{number}");
        let publication = ours.publish(&name)?;
        let view = first_view(&mut reader, &format!("/{name}"))?;
        let other = theirs.publish(&name)?;
        if number >= WARM_UP {
            shared.push(publication);
            shown.push(view);
            alone.push(other);
        }
    }
    print_line(&format!(
        "\n{:16} {:24} {:>8} {:>8}",
        "10 KB, HTML", "", "p50 ms", "p99 ms"
    ))?;
    for (what, figures) in [
        ("with two followers", &shared[..]),
        ("with none", unfollowed),
        ("embedded", &alone[..]),
        ("from the 201 to the view", &shown[..]),
    ] {
        let (middle, last) = (quantile(figures, 0.5), quantile(figures, 0.99));
        print_line(&format!(
            "{:16} {what:24} {middle:>8.2} {last:>8.2}",
            "published"
        ))?;
    }
    let most = quantile(&alone, 0.5) + 15.0;
    let figure = "publish with two followers: p50, ms (embedded + 15)";
    bars.at_most(figure, quantile(&shared, 0.5), most);
    let figure = "page at a follower, after its 201: p99, ms";
    bars.at_most(figure, quantile(&shown, 0.99), 50.0);
    Ok(())
}

/// Kills followers while pages are published, and starts another one for each; returns the followers that there are then.
pub(super) fn measure_deaths(
    site: &Site<'_>,
    owner: &Node,
    mut followers: Vec<Node>,
    bars: &mut Bars<'_>,
) -> anyhow::Result<Vec<Node>> {
    let mut longest = Vec::new();
    for death in 0..DEATHS {
        let mut publisher = Publisher::new(&owner.svc, 13 + death as u64)?;
        publisher.publish_for(&format!("before-{death}"), BEFORE_DEATH)?;
        // The one that follows for longest goes.
        followers.remove(0).lose()?;
        longest.push(publisher.publish_for(&format!("after-{death}"), AFTER_DEATH)?);
        followers.push(site.start_serving()?);
    }
    let longest = longest.into_iter().fold(0.0, f64::max) / 1e3;
    print_line(&format!(
        "{DEATHS} deaths of a follower: the longest publication took {longest:.2} s"
    ))?;
    bars.at_most("a follower dies: longest publish, s", longest, 1.5);
    Ok(followers)
}

/// Client that publishes pages one after the other.
struct Publisher {
    client: Client,
    sources: SourceGenerator,
}

impl Publisher {
    /// Connects to a server. Pages of one seed are the same, and a server stores them once.
    fn new(svc: &Running, seed: u64) -> anyhow::Result<Self> {
        Ok(Self {
            client: svc.client()?,
            sources: SourceGenerator::new(seed),
        })
    }

    /// Publishes a page; returns the time in milliseconds.
    fn publish(&mut self, name: &str) -> anyhow::Result<f64> {
        let page =
            json!({ "type": "html", "name": name, "content": self.sources.html(PAGE_BYTES) });
        let began = Instant::now();
        let answer = self.client.post("/api/v1/deploy", &page)?;
        let took = millis(began.elapsed());
        ensure!(answer.status == 201, "not published: {answer:?}");
        Ok(took)
    }

    /// Publishes pages for `time`; returns the longest time of one in milliseconds.
    fn publish_for(&mut self, name: &str, time: Duration) -> anyhow::Result<f64> {
        let began = Instant::now();
        let (mut longest, mut number) = (0.0, 0);
        while began.elapsed() < time {
            longest = f64::max(longest, self.publish(&format!("{name}-{number}"))?);
            number += 1;
        }
        Ok(longest)
    }
}

/// Returns the time in milliseconds until a page is shown that was published. It must never be called missing.
fn first_view(reader: &mut Client, path: &str) -> anyhow::Result<f64> {
    let began = Instant::now();
    while began.elapsed() < LONGEST {
        match reader.get(path, "identity")?.status {
            200 => return Ok(millis(began.elapsed())),
            // The node says that it may not know.
            503 => thread::sleep(PAUSE),
            other => bail!("{path} was answered by {other} after its 201"),
        }
    }
    bail!("{path} is not shown after its 201")
}
