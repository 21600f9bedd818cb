//! Converts actions into MCP tools, and lists them in pages.

use std::sync::Arc;

use rmcp::model::{ListToolsResult, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::argument_types::ArgumentTypes;
use super::sanitize::strip_invisible;
use crate::backends::model::{CallableAction, is_writing_statement, param_names};
use svc_database::Schema;

/// Maximum size of a page, in bytes. A page has at least one tool.
const PAGE_BYTES: usize = 65_536;
/// Maximum size of a tool's description, in bytes. A larger action is not a tool, because no agent could read it.
const TOOL_BYTES: usize = 16_384;

/// Converts an action into a tool, whose arguments have the types of their columns in a schema; `None` if its description is too large.
pub(super) fn to_tool(action: &CallableAction, schema: Option<&Schema>) -> Option<Tool> {
    let row = &action.row;
    let types = schema.map(|schema| ArgumentTypes::of(&action.statement, schema));
    let types = types.unwrap_or_default();
    let binds: Vec<&String> = param_names(&row.verdict).collect();
    let properties: Map<String, Value> = binds
        .iter()
        .map(|bind| ((*bind).clone(), types.schema_of(bind)))
        .collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    let has_default = |bind: &str| action.defaults.iter().any(|(name, _)| name == bind);
    let required: Vec<_> = binds.iter().filter(|bind| !has_default(bind)).collect();
    schema.insert("required".to_owned(), json!(required));
    schema.insert("additionalProperties".to_owned(), false.into());
    let writes = is_writing_statement(&row.verdict);
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

/// Returns as many tools as fit on a page, in the order of the actions; the cursor of the next page is the name of the last tool.
pub(super) fn tools_page(
    actions: &[Arc<CallableAction>],
    schema: Option<&Schema>,
) -> ListToolsResult {
    let mut left = PAGE_BYTES;
    let mut tools: Vec<Tool> = Vec::new();
    let mut more = false;
    for tool in actions.iter().filter_map(|action| to_tool(action, schema)) {
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

/// Returns the length of a tool in JSON. The conversion of plain data cannot fail.
fn encoded_len(tool: &Tool) -> usize {
    serde_json::to_vec(tool).map_or(usize::MAX, |json| json.len())
}
