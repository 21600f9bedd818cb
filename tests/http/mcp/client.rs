//! A client of the tool endpoint that writes its JSON-RPC by hand.

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use svc_tests::{Answer, ReadAnswer, TestServer};

/// The stateless era of the protocol.
pub(super) const MODERN: &str = "2026-07-28";
/// The last version of the era with `initialize`.
pub(super) const LEGACY: &str = "2025-11-25";
/// The most bytes of a tool's result.
pub(super) const RESULT_BYTES: usize = 40_000;

/// A client of the tools.
#[derive(Debug)]
pub(super) struct Client<'a> {
    pub(super) server: &'a TestServer,
    /// The path of the endpoint.
    pub(super) endpoint: String,
    pub(super) credential: Option<String>,
    pub(super) version: &'static str,
}

/// Answer of a tool.
#[derive(Debug)]
pub(super) struct ToolResult {
    pub(super) refused: bool,
    pub(super) document: Value,
}

impl<'a> Client<'a> {
    pub(super) fn anonymous(server: &'a TestServer) -> Self {
        Self {
            server,
            endpoint: "/mcp".to_owned(),
            credential: None,
            version: MODERN,
        }
    }

    pub(super) fn with_credential(server: &'a TestServer, credential: &str) -> Self {
        Self {
            credential: Some(credential.to_owned()),
            ..Self::anonymous(server)
        }
    }

    /// A visitor's agent at the tools of an app.
    pub(super) fn for_app(server: &'a TestServer, slug: &str) -> Self {
        Self {
            endpoint: format!("/{slug}/mcp"),
            ..Self::anonymous(server)
        }
    }

    pub(super) fn legacy(self) -> Self {
        Self {
            version: LEGACY,
            ..self
        }
    }

    /// A request of the era: with all its headers and, in the stateless one, its `_meta`.
    pub(super) fn message(&self, method: &str, params: &Value) -> RequestBuilder {
        let mut params = params.clone();
        if self.version == MODERN {
            params["_meta"] = meta();
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut request = self
            .server
            .json(&self.endpoint, &body)
            .header("mcp-protocol-version", self.version)
            .header("accept", "application/json, text/event-stream");
        if self.version == MODERN {
            request = request.header("mcp-method", method);
            // What a resource is read by is its address.
            let named = params["name"].as_str().or_else(|| params["uri"].as_str());
            if let Some(name) = named {
                request = request.header("mcp-name", name);
            }
        }
        match &self.credential {
            Some(credential) => request.bearer_auth(credential),
            None => request,
        }
    }

    /// The answer to a request.
    pub(super) async fn send_request(&self, method: &str, params: &Value) -> Answer {
        self.message(method, params).answer().await
    }

    /// The result of a request.
    pub(super) async fn result(&self, method: &str, params: &Value) -> Value {
        let answer = self.send_request(method, params).await.expect(200).json();
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool: what every result has is checked here.
    pub(super) async fn call(&self, tool: &str, arguments: &Value) -> ToolResult {
        let params = json!({ "name": tool, "arguments": arguments });
        let result = self.result("tools/call", &params).await;
        let size = result.to_string().len();
        assert!(size <= RESULT_BYTES, "{size} bytes");
        let document = result["structuredContent"].clone();
        let [text] = result["content"].as_array().unwrap().as_slice() else {
            panic!("{result}");
        };
        assert_eq!(text["type"], "text");
        let text: Value = serde_json::from_str(text["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, document);
        ToolResult {
            refused: result["isError"] == true,
            document,
        }
    }

    /// Calls a tool that succeeds; returns its document.
    pub(super) async fn call_ok(&self, tool: &str, arguments: Value) -> Value {
        let called = self.call(tool, &arguments).await;
        assert!(!called.refused, "{arguments}: {}", called.document);
        called.document
    }

    /// Calls a tool that refuses with this code; returns its problem.
    pub(super) async fn call_refused(&self, tool: &str, arguments: Value, code: &str) -> Value {
        let called = self.call(tool, &arguments).await;
        assert!(called.refused, "{arguments}: {}", called.document);
        let problem = called.document;
        assert_eq!(problem["code"], code, "{arguments}: {problem}");
        let kind = problem["type"].as_str().unwrap();
        assert!(kind.ends_with(&format!("/problems/{code}")), "{problem}");
        assert!(problem["status"].as_u64().unwrap() >= 400);
        assert!(!problem["detail"].as_str().unwrap().is_empty());
        problem
    }
}

/// Writes the metadata that every request of the stateless era has.
pub(super) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": { "name": "tests", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}
