//! Calls of tools that are about a backend's database, which one node of several has.

use super::framing::ParsedRpcMessage;
use super::json_members::JsonMembers;
use crate::access::OperationPlace;
use crate::operations;

/// Returns the project of a call that the node with the database of the project's backend answers; `None` for every other message.
pub(super) fn called_project(message: &ParsedRpcMessage) -> Option<String> {
    let tool = message.tool.as_deref()?;
    let arguments = message.arguments.as_ref()?;
    let arguments: JsonMembers = serde_json::from_str(arguments.get()).ok()?;
    let action: String = arguments.get("action")?;
    let dry_run = arguments.get("dry_run").unwrap_or(false);
    match operations::tool_place(tool, &action, dry_run) {
        OperationPlace::Backend => arguments.get("project_id"),
        OperationPlace::AnyNode | OperationPlace::Control | OperationPlace::ControlWithBackend => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::framing::parse_message;
    use super::*;

    #[test]
    fn a_call_about_rows_is_for_the_node_that_has_them() {
        for (tool, arguments, project) in [
            ("manage_backend", r#""action":"get""#, Some("p")),
            ("manage_backend", r#""action":"batch","ops":[]"#, Some("p")),
            (
                "manage_backend",
                r#""action":"update","dry_run":true"#,
                Some("p"),
            ),
            (
                "manage_backend",
                r#""action":"update","dry_run":false"#,
                None,
            ),
            ("manage_backend", r#""action":"restore""#, None),
            ("manage_backend", r#""action":"delete""#, None),
            ("manage_backend", r#""action":7"#, None),
            ("manage_frontend", r#""action":"get""#, None),
        ] {
            let body = format!(
                r#"{{"method":"tools/call","params":{{"name":"{tool}","arguments":{{"project_id":"p",{arguments}}}}}}}"#
            );
            let message = parse_message(Bytes::from(body)).unwrap();
            let found = called_project(&message);
            assert_eq!(found.as_deref(), project, "{tool} {arguments}");
        }
        let other = parse_message(Bytes::from_static(br#"{"method":"tools/list"}"#)).unwrap();
        assert_eq!(called_project(&other), None);
    }
}
