//! `svc node` and `svc promote`.

use std::fmt::Write as _;

use anyhow::bail;
use serde::{Deserialize, Serialize};

use super::installation::{Installation, OperationAnswer};
use crate::cluster::NodeView;

/// Operation of `svc node` and `svc promote`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeOperation {
    /// Lists the nodes.
    List {},
    /// Has this node take control.
    Promote {},
    /// Takes a dead node off the lists.
    Remove { name: String },
}

/// Answer of `svc node list`.
#[derive(Debug, Serialize)]
struct NodeList<'a> {
    nodes: &'a [NodeView],
}

/// Answer of `svc node remove`.
#[derive(Debug, Serialize)]
struct Removal<'a> {
    /// Name of the node.
    removed: &'a str,
}

/// Answer of `svc promote`.
#[derive(Debug, Serialize)]
struct Promotion {
    /// Whether the node had control before.
    had_control: bool,
}

impl NodeOperation {
    /// Runs at a node that serves.
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        let cluster = at.server.as_ref().and_then(|app| app.cluster.as_ref());
        let Some(serving) = cluster else {
            bail!("this server is no node of several: its settings have no [cluster]");
        };
        match self {
            Self::List {} => list_nodes(&serving.node().list().await?),
            Self::Promote {} if serving.owns_control() => promoted(true),
            Self::Promote {} => {
                serving.node().promote().await?;
                serving.wait_for_control().await;
                promoted(false)
            }
            Self::Remove { name } => {
                serving.node().remove(&name).await?;
                removed(&name)
            }
        }
    }
}

/// Answers with the nodes.
pub(super) fn list_nodes(nodes: &[NodeView]) -> anyhow::Result<OperationAnswer> {
    let mut text = String::new();
    let with_control = nodes.iter().find(|node| node.control);
    let schema = with_control.map(|node| node.schema);
    for node in nodes {
        let state = match node {
            NodeView { live: false, .. } => "dead",
            NodeView { control: true, .. } => "control",
            NodeView { leaving: true, .. } => "leaving",
            NodeView { serves: true, .. } => "follows",
            _ => "standby",
        };
        let NodeView {
            name,
            version,
            databases,
            beat_age_ms,
            ..
        } = node;
        write!(text, "{name:<20} {state:<8} svc {version}")?;
        // Nobody knows when the last beat of a dead one was.
        if node.live {
            write!(
                text,
                "  last beat {beat_age_ms} ms ago  {databases} databases"
            )?;
        }
        if let Some(schema) = schema.filter(|schema| *schema != node.schema)
            && state == "standby"
        {
            write!(text, "  knows schema {}, control has {schema}", node.schema)?;
        }
        text.push('\n');
    }
    OperationAnswer::new(&NodeList { nodes }, text)
}

/// Answers that a node is off the lists.
pub(super) fn removed(name: &str) -> anyhow::Result<OperationAnswer> {
    let text = format!("{name} is removed: it is listed again if it starts again");
    let answer = OperationAnswer::new(&Removal { removed: name }, text)?;
    Ok(answer.logged_as(format!("node remove {name}")))
}

/// Answers that the node has control.
pub(super) fn promoted(had_control: bool) -> anyhow::Result<OperationAnswer> {
    let text = match had_control {
        true => "this node had control already",
        false => "this node has control, and serves",
    };
    let answer = OperationAnswer::new(&Promotion { had_control }, text)?;
    Ok(match had_control {
        true => answer,
        false => answer.logged_as("promote".to_owned()),
    })
}
