//! Errors on the wire: RFC 9457 problems, each with a stable code.
//!
//! A handler answers a [`Problem`]; the front (`front.rs`) writes its document, because it has the base URL, the request's id and the
//! `Accept` header. To add a code, add a line to the table below.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::header::InvalidHeaderValue;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value};

macro_rules! codes {
    ($($variant:ident $code:literal $status:literal $title:literal $about:literal;)+) => {
        /// Kind of an error, by which clients tell it apart.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ProblemCode {
            $(#[doc = $about] $variant,)+
        }

        impl ProblemCode {
            /// Every code, in the table's order.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The code on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// The HTTP status that it comes with.
            pub fn status(self) -> StatusCode {
                let status: u16 = match self { $(Self::$variant => $status,)+ };
                StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }

            /// A few words for people.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }

            /// Explains the error and what to do, for the page at its `type` URL.
            pub fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)+ }
            }
        }
    };
}

codes! {
    InvalidRequest "invalid_request" 400 "Invalid request" "A field, parameter or header breaks a rule. The detail names it and says what is allowed; correct it and send the request again.";
    InvalidJson "invalid_json" 400 "Invalid JSON" "The body is not a JSON document. The detail gives the line and column of the first mistake.";
    ContradictoryExpiry "contradictory_expiry" 400 "Contradictory expiry" "A project either lives for good or has a ttl_seconds. Send one of the two.";
    NothingToUpdate "nothing_to_update" 400 "Nothing to update" "The request names no field to change. Send at least one.";
    TypeMismatch "type_mismatch" 400 "Type mismatch" "A frontend keeps the type that it was made with. Leave `type` out, or make a new frontend.";
    RenderFailed "render_failed" 400 "The content cannot be rendered" "The content breaks the rules of its type, at the line and column given, or exhausted the budget that is named.";
    DdlRefused "ddl_refused" 400 "Script refused" "A script that makes or migrates a backend has a statement that is not additive, that SQLite does not take, or that makes what could never be used. `reason`, `statement` and `position` say which, where and why.";
    StatementRefused "statement_refused" 400 "Statement refused" "The SQL of an action or a query is not allowed, or SQLite does not take it. `reason` says why, and `position`, where it is known, the place.";
    StatementFailed "statement_failed" 400 "The statement failed" "SQLite took the statement, and the values that it was given made it fail as it ran: `reason` says why. Nothing was changed. Send other values.";
    ParamsMismatch "params_mismatch" 400 "Params differ" "A call must name exactly the params of its statement: `missing` and `extra` list the difference.";
    ReservedParam "reserved_param" 400 "Reserved param" "Params that begin with svc_ are given by the platform. Leave them out of the call.";
    InvalidRoom "invalid_room" 400 "Invalid room" "A room's id is 1 to 64 characters of A-Z, a-z, 0-9 and ._~- and begins with a letter or a digit. Name one room.";
    QueryTimeout "query_timeout" 400 "The statement took too much" "The statement ran for too long or needed too much temporary space, and was undone. Add an index or a LIMIT, or do less at once.";
    PathRefused "path_refused" 400 "Path refused" "A path of a site's file breaks a rule: `path` and `reason` say which. Paths are relative, in NFC, without empty, `.` or `..` segments, and no segment begins with a dot but .well-known.";
    RulesRefused "rules_refused" 400 "Rules refused" "A line of `_headers` or `_redirects` breaks the form of these files, or sets what is not for rules to set: `file`, `line` and `reason` say which, where and what to write instead. Nothing was changed. Mend the line, and publish again.";
    DigestMismatch "digest_mismatch" 400 "Digest mismatch" "The bytes are not those that the SHA-256 in the request names, and nothing was kept. Compute it of the bytes that you send.";
    Unauthorized "unauthorized" 401 "Not authorized" "The credential or password is missing, wrong or revoked. Send a valid credential as Authorization: Bearer, or unlock the page with its password first.";
    IdentityRequired "identity_required" 401 "Sign-in required" "The action is for signed-in visitors. Send the visitor to the page's sign-in, then call it again.";
    Forbidden "forbidden" 403 "Forbidden" "The credential is valid, but what it asks for belongs to somebody else.";
    PlanLimit "plan_limit" 403 "Plan limit" "The plan of the workspace does not allow this: it has as many projects as it may, a project as many domains, or the plan is not one that can be set. The detail says what to do.";
    Disabled "disabled" 403 "Disabled for safety" "The operator has disabled this deployment or this domain, or has blocked the bytes that are asked for. Its owner can ask the operator why.";
    ContentBlocked "content_blocked" 403 "Content blocked" "The operator has blocked these bytes on this server, whoever sends them: `sha256` names them, and `path`, where it is a file of a site, says where. Nothing was changed. Leave them out, or ask the operator why.";
    UploadRefused "upload_refused" 403 "Upload refused" "The action that takes the file wrote no row, so the file is refused, and nothing was kept. What the action asks of a file is its author's to say.";
    OriginRefused "origin_refused" 403 "Refused for this origin" "The request comes from a page of another origin, or is not a navigation. Open the page itself instead.";
    NotFound "not_found" 404 "Not found" "Nothing is here: the address is wrong, or what was here has expired, was read once, or was deleted.";
    MethodNotAllowed "method_not_allowed" 405 "Method not allowed" "The address exists, but not for this method. The Allow header lists those that it answers.";
    Timeout "timeout" 408 "The request took too long" "The body did not arrive in time. Send it again over a steadier connection.";
    ConstraintViolation "constraint_violation" 409 "Constraint violation" "A constraint of the database stands against the statement, and nothing was written. The detail names the constraint.";
    BackendExists "backend_exists" 409 "Backend exists" "A project has one backend at most. Change that one, or delete it first.";
    MigrationNotRecorded "migration_not_recorded" 409 "Migration not recorded" "The migration was applied but could not be recorded. Send the same one again: it is recorded then, and not applied twice.";
    IdempotencyConflict "idempotency_conflict" 409 "Idempotency key conflict" "The key was used for another request body, or its first request is still running. Use a new key for a new request; repeat the same request after Retry-After.";
    SlugConflict "slug_conflict" 409 "Slug conflict" "A workspace, or another page where a release makes one, has this slug already. Choose another one; of a workspace you can leave it out: one is made of the name then.";
    ReleaseConflict "release_conflict" 409 "Release conflict" "Something of the release has been changed since you looked: `conflicts` lists each page and action with what you expected and what was found. No page and no action was changed. Read what is live, make your change on top of it, and send that.";
    LastOwner "last_owner" 409 "Last owner" "A workspace always has an owner. Make somebody else one first; then this one can go or get another role.";
    NoSubscription "no_subscription" 409 "No subscription" "The workspace has never had a subscription, so there is nothing to manage. Buy the plan first.";
    RevisionConflict "revision_conflict" 409 "Revision conflict" "Somebody else has released another revision meanwhile. Read the revision that active_revision_id names, make your change on top of it, and send that.";
    FilesMissing "files_missing" 409 "Files missing" "The project does not have the files of these digests: `missing` lists them. Send them with PUT /api/v1/projects/{id}/blobs/{sha256}, then the same request again.";
    ImmutableChanged "immutable_changed" 409 "Immutable file changed" "The site would have other bytes at paths that are immutable and were live: `paths` lists them. Browsers keep such files for a year. Give each another name, or take the pattern out of `options.immutable`.";
    ActionConflict "action_conflict" 409 "Action conflict" "An action has another version than expected: somebody else has changed it meanwhile, and nothing of this request was kept. `name`, `expected` and `found` say which. Read the action, make your change on top of it, and send that.";
    PriceInactive "price_inactive" 409 "Price inactive" "The price was taken off the catalog, and nobody can buy it any more. Offer another price of the catalog.";
    PriceKeyTaken "price_key_taken" 409 "Price key taken" "Another price that is on sale in the project has this key. Take that price off the catalog first, or choose another key.";
    DomainTaken "domain_taken" 409 "Domain taken" "DNS proves that the domain is another project's, too, and the first keeps it. Take the other project's record away, then verify again.";
    DomainUnproven "domain_unproven" 409 "Domain not proven" "DNS has none of the records by which the domain proves whose it is. `records` lists those that are wanted, `seen` those that are there. Set one of the wanted ones, wait until DNS shows it, then verify again.";
    LengthRequired "length_required" 411 "Length required" "The request must say how long its body is. Send it with a Content-Length.";
    PayloadTooLarge "payload_too_large" 413 "Too large" "The request body, or the result of a statement, is larger than this route takes. The detail gives the limit.";
    DatabaseFull "database_full" 413 "Database full" "The write would make the database larger than it may be, and nothing was written. Delete rows first.";
    StorageFull "storage_full" 413 "Storage full" "The project's files would take more room than its plan allows: `used_bytes` and `limit_bytes` say how much. Nothing was kept. Delete revisions or files that are not needed any more, or use another plan.";
    UnsupportedMediaType "unsupported_media_type" 415 "Unsupported media type" "The body is encoded in a way that the service does not read, or a file is of a type that the action does not take. Send it without a Content-Encoding, or send another file.";
    RangeNotSatisfiable "range_not_satisfiable" 416 "Range not satisfiable" "The page is shorter than the range that was asked for. Content-Range gives its length.";
    Misdirected "misdirected" 421 "Misdirected request" "The Host of the request is none that this server answers for.";
    RateLimited "rate_limited" 429 "Too many requests" "The client, or this deployment, has spent its requests for now. Wait as long as Retry-After says.";
    Internal "internal" 500 "Internal error" "Something failed in the service. Give the request id to the operator.";
    ProviderUnavailable "provider_unavailable" 503 "Provider unavailable" "A provider that the service depends on for this, of sign-in, tokens or payments, does not answer as it should, and nothing was done. Try again after Retry-After.";
    DatabaseBusy "database_busy" 503 "Database busy" "The database did not get to the request in time, and nothing was done. Try again after Retry-After.";
    IdentityUnconfigured "identity_unconfigured" 503 "Sign-in is not set up" "The operator of this server has set up no sign-in provider that the page may offer, so its visitors stay anonymous.";
    PaymentsUnconfigured "payments_unconfigured" 503 "Payments are not configured" "The operator of this server has not configured a payment provider, so nothing can be bought here.";
    DomainsUnconfigured "domains_unconfigured" 503 "Domains are not configured" "The operator of this server has set no sites_domain, so projects have no origins that a domain could lead to.";
    DnsUnavailable "dns_unavailable" 503 "DNS does not answer" "No usable answer came from DNS in time, and nothing was changed. Try again after Retry-After.";
    CapacityReached "capacity_reached" 503 "Capacity reached" "The server has no room or no free worker for this just now, or does not reach its storage. Try again after Retry-After.";
    Interrupted "interrupted" 503 "Interrupted" "The server that had the request went away. It may have been done: look, or send it again with the same Idempotency-Key.";
}

/// Bytes and headers that few problems have more of.
const USUAL_BYTES: usize = 512;
const USUAL_HEADERS: usize = 12;

/// An error answer.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Kind of the error.
    pub code: ProblemCode,
    /// Sentence that names what is wrong in this request, and says what to do.
    pub detail: Cow<'static, str>,
    /// Extension members.
    pub extensions: Map<String, Value>,
    /// Headers beside those of every problem.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Cause inside, for the log alone.
    pub cause: Option<String>,
}

impl Problem {
    /// Makes a problem.
    pub fn new(code: ProblemCode, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            detail: detail.into(),
            extensions: Map::new(),
            headers: Vec::new(),
            cause: None,
        }
    }

    /// Makes the 404 of everything that does not exist: the reasons cannot be told apart.
    pub fn not_found() -> Self {
        Self::new(
            ProblemCode::NotFound,
            "Nothing is here. The address is wrong, or what was here has expired, was deleted, or could be opened only once and has been.",
        )
    }

    /// Makes the 405; the router adds `Allow`.
    pub fn method_not_allowed() -> Self {
        Self::new(
            ProblemCode::MethodNotAllowed,
            "This address does not answer that method. The Allow header lists those that it does.",
        )
    }

    /// Makes the 503 of a request whose server ended, or lost its ledger, before it could say what became of it.
    pub fn interrupted() -> Self {
        Self::new(ProblemCode::Interrupted, ProblemCode::Interrupted.about())
    }

    /// Makes the 500 of an error of ours: `error` goes to the log, never to the client.
    pub fn internal(error: &(dyn std::fmt::Display + Send + Sync)) -> Self {
        let detail = "The service failed to answer this request. Try again; if it fails again, give the request id to the operator.";
        Self {
            cause: Some(error.to_string()),
            ..Self::new(ProblemCode::Internal, detail)
        }
    }

    /// Logs the cause, if there is one.
    pub fn log(&self, request_id: &str) {
        if let Some(cause) = &self.cause {
            tracing::error!(request = request_id, cause, "internal error");
        }
    }

    /// Adds an extension member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extensions.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Has the client come back within a second: what is in the way passes soon, as the takeover of another node.
    #[must_use]
    pub fn retry_soon(self) -> Self {
        self.header(header::RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// Returns the problem document (RFC 9457), which is written as JSON.
    pub fn document<'p>(&'p self, base_url: &'p str, request_id: &'p str) -> ProblemDocument<'p> {
        ProblemDocument {
            problem: self,
            base_url,
            request_id,
        }
    }
}

/// Document of a problem (RFC 9457).
#[derive(Clone, Copy, Debug)]
pub struct ProblemDocument<'p> {
    problem: &'p Problem,
    base_url: &'p str,
    request_id: &'p str,
}

impl ProblemDocument<'_> {
    /// Returns the document as a tree.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Writes the document as JSON.
    pub fn to_json(&self) -> String {
        let mut text = Vec::with_capacity(USUAL_BYTES);
        let written = serde_json::to_writer(&mut text, self);
        let text = written.ok().and_then(|()| String::from_utf8(text).ok());
        text.unwrap_or_default()
    }
}

impl Serialize for ProblemDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Problem {
            code,
            detail,
            extensions,
            ..
        } = self.problem;
        let (name, status) = (code.as_str(), code.status());
        let mut document = serializer.serialize_map(None)?;
        document.serialize_entry("type", &format_args!("{}/problems/{name}", self.base_url))?;
        document.serialize_entry("title", code.title())?;
        document.serialize_entry("status", &status.as_u16())?;
        document.serialize_entry("detail", detail)?;
        document.serialize_entry("code", name)?;
        if status.is_server_error() {
            document.serialize_entry("request_id", self.request_id)?;
        }
        for (name, value) in extensions {
            document.serialize_entry(name, value)?;
        }
        document.end()
    }
}

impl From<InvalidHeaderValue> for Problem {
    fn from(error: InvalidHeaderValue) -> Self {
        Self::internal(&error)
    }
}

impl IntoResponse for Problem {
    /// Makes an empty answer that carries the problem to the front in its extensions.
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        let headers = response.headers_mut();
        headers.reserve(USUAL_HEADERS);
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        let wait = match (self.code, self.code.status()) {
            // Another server takes over within seconds.
            (ProblemCode::Interrupted, _) => Some("1"),
            (_, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => Some("60"),
            _ => None,
        };
        if let Some(wait) = wait {
            let wait = HeaderValue::from_static(wait);
            headers.entry(header::RETRY_AFTER).or_insert(wait);
        }
        response.extensions_mut().insert(Box::new(self));
        response
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_are_distinct_and_their_statuses_errors() {
        let codes: HashSet<_> = ProblemCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(codes.len(), ProblemCode::ALL.len());
        assert!(
            ProblemCode::ALL
                .iter()
                .all(|code| code.status().as_u16() >= 400)
        );
    }

    #[test]
    fn what_waits_says_for_how_long() {
        let full = || Problem::new(ProblemCode::CapacityReached, "full");
        for (problem, wait) in [
            (full(), Some("60")),
            (full().retry_soon(), Some("1")),
            (Problem::interrupted(), Some("1")),
            (Problem::not_found(), None),
        ] {
            let response = problem.into_response();
            let said = response.headers().get(header::RETRY_AFTER);
            assert_eq!(said.map(|said| said.to_str().unwrap()), wait);
        }
    }

    #[test]
    fn only_our_failures_carry_the_request_id() {
        let document = |problem: &Problem| -> Value {
            serde_json::from_str(&problem.document("http://x", "r1").to_json()).unwrap()
        };
        let missing = document(&Problem::not_found());
        assert_eq!(missing["type"], "http://x/problems/not_found");
        assert_eq!(missing.get("request_id"), None);
        let ours = document(&Problem::new(ProblemCode::CapacityReached, "full"));
        assert_eq!(ours["request_id"], "r1");
    }
}
