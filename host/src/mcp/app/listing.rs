//! Actions as the tools that they are for agents, and the pages in which they are listed.

use std::sync::Arc;

use rmcp::model::{ListToolsResult, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::sanitize::strip_invisible;
use crate::backends::model::{Action, params, writes};

/// The most bytes of a page: its tools and what stands around them. A page has one tool at least.
const PAGE_BYTES: usize = 65_536;
/// The most bytes of a tool. An action that takes more to describe is none: no agent could read it.
const TOOL_BYTES: usize = 16_384;

/// An action as a tool; `None` if it takes more to describe than a tool may.
pub(super) fn to_tool(action: &Action) -> Option<Tool> {
    let row = &action.row;
    let binds: Vec<&String> = params(&row.verdict).collect();
    let scalar = || json!({ "type": ["string", "number", "boolean", "null"] });
    let properties: Map<String, Value> = binds
        .iter()
        .map(|bind| ((*bind).clone(), scalar()))
        .collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), json!(binds));
    schema.insert("additionalProperties".to_owned(), false.into());
    let writes = writes(&row.verdict);
    let mut tool = Tool::new(row.name.clone(), "", schema).with_annotations(
        ToolAnnotations::new()
            .read_only(!writes)
            .destructive(writes)
            .idempotent(!writes)
            .open_world(false),
    );
    tool.description = row.note.as_deref().map(|note| strip_invisible(note).into());
    (encoded_len(&tool) <= TOOL_BYTES).then_some(tool)
}

/// As many tools as fit on a page, of the actions in their order; the cursor of the next page is the name of the last.
pub(super) fn page(actions: &[Arc<Action>]) -> ListToolsResult {
    let mut left = PAGE_BYTES;
    let mut tools: Vec<Tool> = Vec::new();
    let mut more = false;
    for tool in actions.iter().filter_map(|action| to_tool(action)) {
        let takes = encoded_len(&tool) + 1;
        if takes > left && !tools.is_empty() {
            more = true;
            break;
        }
        left = left.saturating_sub(takes);
        tools.push(tool);
    }
    let last = tools.last().filter(|_| more);
    let next_cursor = last.map(|tool| tool.name.clone().into_owned());
    ListToolsResult {
        next_cursor,
        ..ListToolsResult::with_all_items(tools)
    }
}

/// How long a tool is on the wire. Plain data always has a JSON form.
fn encoded_len(tool: &Tool) -> usize {
    serde_json::to_vec(tool).map_or(usize::MAX, |json| json.len())
}
