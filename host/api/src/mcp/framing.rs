//! JSON-RPC over HTTP, before the MCP library sees a request and after it has answered.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::json_members::JsonMembers;

/// JSON-RPC code for a text that is not JSON.
const PARSE_ERROR: i32 = -32700;
/// JSON-RPC code for JSON that is not a request.
const INVALID_REQUEST: i32 = -32600;
/// Method that calls a tool.
const CALL_METHOD: &str = "tools/call";
/// Tools that publish sites, and the arguments that have files.
const PUBLISHING_TOOLS: [&str; 2] = ["manage_frontend", "manage_project"];
const FILE_ARGUMENTS: [&str; 3] = ["files", "changes", "pages"];
const JSON_MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/json");
const JSON_AND_EVENT_STREAM: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");

/// JSON-RPC error response.
#[derive(Debug)]
pub(super) struct RpcErrorResponse {
    pub(super) status: StatusCode,
    /// JSON-RPC error document.
    pub(super) body: String,
}

/// JSON-RPC message, parsed as far as this server needs it.
#[derive(Debug, Default)]
pub(super) struct ParsedRpcMessage {
    id: Value,
    pub(super) method: Option<String>,
    /// Name of the called tool, if the method calls one.
    pub(super) tool: Option<String>,
    /// Unparsed arguments of the call, if they are an object.
    pub(super) arguments: Option<Box<RawValue>>,
    /// Message for the library, with empty arguments, because the library would round some numbers and drop duplicates.
    pub(super) body: Bytes,
}

/// Parses a body as a JSON-RPC message.
pub(super) fn parse_message(body: Bytes) -> Result<ParsedRpcMessage, RpcErrorResponse> {
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(&body) {
        return Err(RpcErrorResponse::new(
            StatusCode::BAD_REQUEST,
            PARSE_ERROR,
            &Value::Null,
            &format!("The body is not valid JSON: {error}."),
        ));
    }
    match body.trim_ascii_start().first() {
        Some(b'{') => {}
        Some(b'[') => {
            return Err(invalid_message(
                "Batches are not served: send one message a request.",
            ));
        }
        _ => return Err(invalid_message("The body must be a JSON-RPC message.")),
    }
    let misfit =
        || invalid_message("The body must be a JSON-RPC message, with each of its members once.");
    let mut members: JsonMembers = serde_json::from_slice(&body).map_err(|_| misfit())?;
    let method: Option<String> = members.get("method");
    if method.is_none() && members.0.contains_key("method") {
        return Err(misfit());
    }
    let mut message = ParsedRpcMessage {
        id: members.get("id").unwrap_or_default(),
        method,
        body,
        ..ParsedRpcMessage::default()
    };
    let params = members.0.get("params").map(|params| params.get());
    let params =
        params.filter(|params| is_object(params) && message.method.as_deref() == Some(CALL_METHOD));
    if let Some(params) = params {
        let mut params: JsonMembers = serde_json::from_str(params).map_err(|_| misfit())?;
        message.tool = params.get("name");
        let arguments = params.0.get_mut("arguments");
        if let Some(arguments) = arguments.filter(|arguments| is_object(arguments.get())) {
            message.arguments = Some(std::mem::replace(arguments, to_raw_json(&json!({}))?));
            members.0.insert("params".to_owned(), to_raw_json(&params)?);
            message.body = to_raw_json(&members)?.get().to_owned().into();
        }
    }
    Ok(message)
}

fn is_object(json: &str) -> bool {
    json.starts_with('{')
}

fn to_raw_json(value: &impl Serialize) -> Result<Box<RawValue>, RpcErrorResponse> {
    serde_json::value::to_raw_value(value).map_err(|error| invalid_message(&error.to_string()))
}

fn invalid_message(why: &str) -> RpcErrorResponse {
    RpcErrorResponse::new(StatusCode::BAD_REQUEST, INVALID_REQUEST, &Value::Null, why)
}

/// Sets the headers that the library requires: it needs a JSON content type, and an `Accept` with both media types from each client that
/// accepts JSON.
pub(super) fn normalize_headers(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_TYPE, JSON_MEDIA_TYPE);
    let lines: Vec<&str> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .collect();
    let media = lines
        .iter()
        .flat_map(|line| line.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim());
    let takes = |range: &str| {
        ["application/json", "application/*", "*/*"]
            .iter()
            .any(|ours| range.eq_ignore_ascii_case(ours))
    };
    if lines.is_empty() || media.into_iter().any(takes) {
        headers.insert(header::ACCEPT, JSON_AND_EVENT_STREAM);
    }
}

impl ParsedRpcMessage {
    /// Whether the message calls a tool with files to publish, which may be as many as in a publication without tools.
    pub(super) fn publishes_files(&self) -> bool {
        let tool = self.tool.as_deref();
        let publishes = tool.is_some_and(|tool| PUBLISHING_TOOLS.contains(&tool));
        let arguments = self.arguments.as_ref().filter(|_| publishes);
        let members =
            arguments.and_then(|given| serde_json::from_str::<JsonMembers>(given.get()).ok());
        members.is_some_and(|members| {
            let mut names = FILE_ARGUMENTS.iter();
            names.any(|name| members.0.contains_key(*name))
        })
    }

    /// Converts a plain text answer of the library into a JSON-RPC error.
    pub(super) fn error_response(&self, status: StatusCode, text: &str) -> RpcErrorResponse {
        // The library's 415 means that the document is not a message, whatever its content type.
        let status = match status {
            StatusCode::UNSUPPORTED_MEDIA_TYPE => StatusCode::BAD_REQUEST,
            other => other,
        };
        RpcErrorResponse::new(status, INVALID_REQUEST, &self.id, text)
    }
}

impl RpcErrorResponse {
    fn new(status: StatusCode, code: i32, id: &Value, message: &str) -> Self {
        let id = match id {
            Value::String(_) | Value::Number(_) => id,
            _ => &Value::Null,
        };
        let error = json!({ "code": code, "message": message });
        Self {
            status,
            body: json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_of_a_call_is_seen() {
        for (body, tool) in [
            (
                r#"{"method":"tools/call","params":{"name":"a"}}"#,
                Some("a"),
            ),
            (r#"{"method":"tools/list","params":{"name":"a"}}"#, None),
            (r#"{"method":"tools/call","params":["a"]}"#, None),
            (r#"{"method":"tools/call"}"#, None),
            (r#"{"id":1,"result":{}}"#, None),
        ] {
            let message = parse_message(Bytes::from_static(body.as_bytes())).unwrap();
            assert_eq!(message.tool.as_deref(), tool, "{body}");
        }
    }

    #[test]
    fn arguments_stay_as_they_were_written() {
        let body =
            r#"{"id":7,"method":"tools/call","params":{"name":"a","arguments":{ "n":1e400 }}}"#;
        let message = parse_message(Bytes::from_static(body.as_bytes())).unwrap();
        assert_eq!(message.arguments.unwrap().get(), r#"{ "n":1e400 }"#);
        let left: Value = serde_json::from_slice(&message.body).unwrap();
        let params = json!({ "name": "a", "arguments": {} });
        assert_eq!(
            left,
            json!({ "id": 7, "method": "tools/call", "params": params })
        );
        // The library refuses params that are not an object.
        let body = r#"{"method":"tools/call","params":{"name":"a","arguments":[]}}"#;
        let message = parse_message(Bytes::from_static(body.as_bytes())).unwrap();
        assert!(message.arguments.is_none());
        assert_eq!(message.body, body);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for (body, code) in [
            ("", "-32700"),
            ("{", "-32700"),
            ("[]", "-32600"),
            ("7", "-32600"),
            (r#"{"method":7}"#, "-32600"),
            // Two parsers must not see two different tools.
            (r#"{"method":"a","method":"tools/call"}"#, "-32600"),
            (
                r#"{"method":"tools/call","params":{"name":"a","name":"b"}}"#,
                "-32600",
            ),
        ] {
            let refused = parse_message(Bytes::from_static(body.as_bytes())).unwrap_err();
            assert_eq!(refused.status, 400);
            assert!(refused.body.contains(code), "{body}: {}", refused.body);
        }
    }

    #[test]
    fn a_client_that_takes_json_is_served() {
        for (accept, served) in [
            (None, true),
            (Some("*/*"), true),
            (Some("application/*;q=0.5"), true),
            (Some("text/html, application/json"), true),
            (Some("text/event-stream"), false),
            (Some("text/html"), false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            }
            normalize_headers(&mut headers);
            let now = headers.get(header::ACCEPT);
            assert_eq!(now == Some(&JSON_AND_EVENT_STREAM), served, "{accept:?}");
        }
    }
}
