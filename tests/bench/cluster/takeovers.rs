//! Takeovers among three nodes that serve: the one that has control, and a database, is killed. Its disk is thrown away, and the time is
//! taken until the others have published a page, and acknowledged an insert.

use std::thread;
use std::time::Instant;

use anyhow::{Context as _, bail};
use serde_json::json;

use super::super::items;
use super::super::owner::Owner;
use super::super::report::{print_line, quantile};
use super::site::{Node, Site};
use super::{Bars, SLUG};

/// Kills the owner so many times; returns the nodes that there are then.
pub(super) fn measure(
    site: &Site<'_>,
    mut nodes: Vec<Node>,
    (credential, count): (&str, usize),
    bars: &mut Bars<'_>,
) -> anyhow::Result<Vec<Node>> {
    let (mut published, mut inserted) = (Vec::new(), Vec::new());
    for number in 0..count {
        let owner = site.take_owner(&mut nodes)?;
        bring_database(&owner, credential, number)?;
        let [first, second] = &nodes[..] else {
            bail!("there are not two nodes beside the owner");
        };
        let killed = Instant::now();
        owner.lose()?;
        let publishing = || {
            first.wait_for_control()?;
            anyhow::Ok(killed.elapsed().as_secs_f64())
        };
        let (publish, insert) = thread::scope(|scope| {
            let publishing = scope.spawn(publishing);
            wait_for_insert(second)?;
            let insert = killed.elapsed().as_secs_f64();
            let publish = publishing.join().ok().context("a client panicked")??;
            anyhow::Ok((publish, insert))
        })?;
        published.push(publish);
        inserted.push(insert);
        nodes.push(site.start_serving()?);
        nodes.iter().try_for_each(Node::wait_until_ready)?;
    }
    print_line("")?;
    for (what, took) in [("a publication", published), ("an insert", inserted)] {
        let (middle, last) = (quantile(&took, 0.5), quantile(&took, 0.99));
        print_line(&format!(
            "{count} takeovers among three nodes until {what} was acknowledged: p50 {middle:.2} s, p99 {last:.2} s"
        ))?;
        if count > 0 {
            bars.at_most(&format!("takeover until {what}: p50, s"), middle, 7.0);
            bars.at_most(&format!("takeover until {what}: p99, s"), last, 10.0);
        }
    }
    Ok(nodes)
}

/// Has the owner of control get the database: its schema is changed there.
fn bring_database(owner: &Node, credential: &str, number: usize) -> anyhow::Result<()> {
    let mut client = Owner::new(&owner.svc, credential)?;
    client.select_first_project()?;
    let ddl = json!({ "ddl": format!("CREATE TABLE taken_{number} (x);") });
    client.send("PATCH", "/backend", &ddl)?;
    wait_for_insert(owner)
}

/// Waits until a node has acknowledged an insert.
fn wait_for_insert(node: &Node) -> anyhow::Result<()> {
    let insert = items::call(node.svc.address, SLUG, "insert", &items::new_row());
    node.wait_for_answer(&insert, 200)
}
