//! Takeovers: the node that has control is killed, its disk is thrown away, and the time is taken until its standby has acknowledged an
//! insert.

use std::time::Instant;

use super::super::items;
use super::super::report::{print_line, quantile};
use super::site::{Node, Site};
use super::{Bars, SLUG};

/// Kills the owner so many times; returns the last one.
pub(super) fn measure(
    site: &Site<'_>,
    node: Node,
    count: usize,
    bars: &mut Bars<'_>,
) -> anyhow::Result<Node> {
    let insert = |node: &Node| items::call(node.svc.address, SLUG, "insert", &items::new_row());
    let (mut owner, mut took) = (node, Vec::new());
    for _ in 0..count {
        let standby = site.start()?;
        owner.wait_for_answer(&insert(&owner))?;
        let killed = Instant::now();
        owner.lose()?;
        standby.wait_for_answer(&insert(&standby))?;
        took.push(killed.elapsed().as_secs_f64());
        owner = standby;
    }
    let (middle, last) = (quantile(&took, 0.5), quantile(&took, 0.99));
    print_line(&format!(
        "\n{count} takeovers until an insert was acknowledged: p50 {middle:.2} s, p99 {last:.2} s"
    ))?;
    if count > 0 {
        bars.at_most("takeover: p50, s", middle, 7.0);
        bars.at_most("takeover: p99, s", last, 10.0);
    }
    Ok(owner)
}
