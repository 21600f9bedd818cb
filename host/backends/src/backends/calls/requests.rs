//! Requests of action calls and of owners' queries, and their checks.

use std::collections::HashSet;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::extract::{check_characters, invalid_request, parse_json};
use crate::http::problem::Problem;
use crate::visitors::ActionCallerIdentity;
use svc_database::BatchStepParam;
use svc_database::values::{self, Params};
use svc_sandbox::MAX_STATEMENT_BYTES;

/// Maximum number of ops in a batch.
pub const MAX_OPS: usize = 20;

/// A call of an action.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "describes what UncheckedCallBody reads")]
pub struct CallAction {
    /// Name of the action.
    #[schema(min_length = 1, example = "add_note")]
    action: String,
    /// A value for each of its params, and nothing else; may be absent for an action without any.
    #[serde(default)]
    #[schema(value_type = Option<std::collections::HashMap<String, SqlValue>>)]
    params: NamedParams<values::Value>,
    /// The visitor to call as. An extension, for trying actions out: it needs the owner's credential.
    #[serde(rename = "as")]
    #[schema(rename = "as")]
    by: Option<As>,
}

/// A visitor whom an owner calls an action as.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with `user_id` and `email`"
)]
pub struct As {
    /// The value of `:svc_user_id`; any text.
    #[schema(min_length = 1, max_length = 100, example = "usr_test")]
    user_id: String,
    /// The value of `:svc_user_email`; NULL, if absent.
    #[schema(max_length = 320, example = "ada@example.com")]
    email: Option<String>,
    /// The value of `:svc_user_name`; NULL, if absent.
    #[schema(max_length = 800, example = "Ada Lovelace")]
    name: Option<String>,
}

impl As {
    /// Checks the identity.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<ActionCallerIdentity, Problem> {
        if self.user_id.is_empty() {
            return Err(invalid_request(
                "`as.user_id` is empty: name the visitor to call as.",
            ));
        }
        check_characters("as.user_id", Some(&self.user_id), 100)?;
        check_characters("as.email", self.email.as_deref(), 320)?;
        check_characters("as.name", self.name.as_deref(), 800)?;
        Ok(ActionCallerIdentity {
            user_id: self.user_id,
            email: self.email,
            name: self.name,
        })
    }
}

/// Several calls as one: all of them or none, in order. An extension.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallBatch {
    /// At most 20. Each counts as a call for the rate limits, and all together have the time of one.
    #[schema(min_items = 1, max_items = 20, value_type = Vec<BatchedCall>)]
    pub ops: Vec<Box<RawValue>>,
    /// The visitor to call as, as in a single call.
    #[serde(rename = "as")]
    #[schema(rename = "as")]
    pub by: Option<As>,
}

/// A call in a batch.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchedCall {
    /// The action's name.
    #[schema(min_length = 1, example = "add_note")]
    pub(super) action: String,
    /// A value for each of its params, or what the first row of an earlier op has in a column: `{"from": [0, "id"]}`.
    #[serde(default)]
    #[schema(value_type = Option<std::collections::HashMap<String, GivenValue>>)]
    pub(super) params: NamedParams<BatchStepParam>,
}

/// A call, or a batch of calls, as the description of the API has it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[allow(
    dead_code,
    reason = "describes what UncheckedCallBody reads, which says better what is wrong"
)]
pub enum CallOrBatch {
    /// One call.
    Call(CallAction),
    /// Several calls.
    Batch(CallBatch),
}

/// Body of a call, before its checks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UncheckedCallBody {
    action: Option<String>,
    params: Option<NamedParams<values::Value>>,
    ops: Option<Vec<Box<RawValue>>>,
    #[serde(rename = "as")]
    pub(super) by: Option<As>,
}

/// Checked request of a call.
#[derive(Debug)]
pub(super) enum CheckedCallRequest {
    /// Single call.
    Call { action: String, params: Params },
    /// Batch of at least one call.
    Batch(Vec<BatchedCall>),
}

/// Fault of params that are read by themselves.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ParamsError {
    /// No call can have them.
    #[error("In `params`: {0}.")]
    Invalid(String),
    /// They are no JSON.
    #[error("`params` is not valid JSON: {0}.")]
    NotJson(String),
}

/// Reads the params of a call by themselves; absent ones are none.
///
/// # Errors
/// [`ParamsError`].
pub fn read_params(json: Option<&str>) -> Result<Params, ParamsError> {
    let Some(json) = json else {
        return Ok(Params::new());
    };
    match serde_json::from_str::<NamedParams<values::Value>>(json) {
        Ok(params) => Ok(params.0),
        Err(error) if error.is_data() => Err(ParamsError::Invalid(error.to_string())),
        Err(error) => Err(ParamsError::NotJson(error.to_string())),
    }
}

/// Reads a JSON object of params without looking at their values.
///
/// # Errors
/// When it is no object, or a name comes twice.
pub(in crate::backends) fn read_raw_params(
    json: &str,
) -> Result<Vec<(String, Box<RawValue>)>, serde_json::Error> {
    serde_json::from_str::<NamedParams<Box<RawValue>>>(json).map(|params| params.0)
}

impl UncheckedCallBody {
    /// Checks the body.
    ///
    /// # Errors
    /// `invalid_request`.
    pub(super) fn checked(self) -> Result<CheckedCallRequest, Problem> {
        match (self.action, self.params, self.ops) {
            (Some(action), params, None) if !action.is_empty() => Ok(CheckedCallRequest::Call {
                action,
                params: params.unwrap_or_default().0,
            }),
            (None, None, Some(ops)) => check_ops(ops).map(CheckedCallRequest::Batch),
            (_, _, None) => Err(invalid_request(
                "In the body: missing field `action`.".to_owned(),
            )),
            _ => Err(invalid_request(
                "In the body: `ops` is sent alone, without `action` and `params`.".to_owned(),
            )),
        }
    }
}

/// Parses the ops of a batch, and checks all that does not depend on the actions.
///
/// # Errors
/// `invalid_request`.
pub fn check_ops(ops: Vec<Box<RawValue>>) -> Result<Vec<BatchedCall>, Problem> {
    if ops.is_empty() || ops.len() > MAX_OPS {
        return Err(invalid_request(format!(
            "`ops` has {} entries; send 1 to {MAX_OPS}.",
            ops.len()
        )));
    }
    let read = |(number, op): (usize, Box<RawValue>)| {
        parse_json::<BatchedCall>(op.get().as_bytes()).map_err(|problem| {
            let detail = format!("Op {number}: {}", problem.detail).into();
            Problem { detail, ..problem }.with("index", number)
        })
    };
    let ops = ops.into_iter().enumerate().map(read);
    let ops = ops.collect::<Result<Vec<_>, _>>()?;
    for (number, op) in ops.iter().enumerate() {
        if op.action.is_empty() {
            let missing = format!("Op {number}: In the body: missing field `action`.");
            return Err(invalid_request(missing).with("index", number));
        }
        for (name, given) in &op.params.0 {
            if let BatchStepParam::From { step, .. } = given
                && *step >= number
            {
                return Err(invalid_request(format!(
                    "`ops[{number}].params.{name}` is from op {step}, which does not come before it."
                ))
                .with("index", number));
            }
        }
    }
    Ok(ops)
}

/// A query of the owner's.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunQuery {
    /// One `SELECT`, `INSERT`, `UPDATE` or `DELETE`.
    #[schema(max_length = 65_536, example = "SELECT count(*) AS n FROM notes")]
    sql: String,
    /// A value for each of its binds, and nothing else.
    #[serde(default)]
    #[schema(value_type = Option<std::collections::HashMap<String, SqlValue>>)]
    params: NamedParams<values::Value>,
}

/// A query of the owner's, without a page.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryBackend {
    /// One `SELECT`, `INSERT`, `UPDATE` or `DELETE`.
    #[schema(max_length = 65_536, example = "SELECT count(*) AS n FROM notes")]
    sql: String,
    /// A value for each of its binds, and nothing else.
    #[serde(default)]
    #[schema(value_type = Option<std::collections::HashMap<String, SqlValue>>)]
    params: NamedParams<values::Value>,
    /// Whether a statement that writes is refused; no, if absent.
    read_only: Option<bool>,
}

/// Checked query of the owner's.
#[derive(Debug)]
pub struct OwnerQuery {
    pub sql: String,
    pub params: Params,
    /// Whether a statement that writes is refused.
    pub read_only: bool,
}

impl QueryBackend {
    /// Checks the query.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<OwnerQuery, Problem> {
        if self.sql.len() > MAX_STATEMENT_BYTES {
            return Err(invalid_request(format!(
                "`sql` has {} bytes; {MAX_STATEMENT_BYTES} is the most.",
                self.sql.len()
            )));
        }
        Ok(OwnerQuery {
            sql: self.sql,
            params: self.params.0,
            read_only: self.read_only.unwrap_or(false),
        })
    }
}

impl From<RunQuery> for QueryBackend {
    fn from(query: RunQuery) -> Self {
        Self {
            sql: query.sql,
            params: query.params,
            read_only: None,
        }
    }
}

/// A value of a row or a param; `openapi/rules.rs` describes it.
#[derive(Debug, Serialize, ToSchema)]
pub struct SqlValue;

/// A value of a param of a batch; `openapi/rules.rs` describes it.
#[derive(Debug, Serialize, ToSchema)]
pub struct GivenValue;

/// Params of a call, as an object.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct CallParams(NamedParams<values::Value>);

impl From<CallParams> for Params {
    fn from(given: CallParams) -> Self {
        given.0.0
    }
}

/// Params by name, in order.
#[derive(Debug)]
pub(in crate::backends) struct NamedParams<V>(pub(in crate::backends) Vec<(String, V)>);

impl<V> Default for NamedParams<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Value that a param can be parsed as.
pub(in crate::backends) trait ParseParam: Sized {
    /// Parses the value, or returns the error text.
    fn parse(json: &RawValue) -> Result<Self, &'static str>;
}

impl ParseParam for values::Value {
    fn parse(json: &RawValue) -> Result<Self, &'static str> {
        values::parse(json)
    }
}

impl ParseParam for Box<RawValue> {
    fn parse(json: &RawValue) -> Result<Self, &'static str> {
        Ok(json.to_owned())
    }
}

impl ParseParam for BatchStepParam {
    fn parse(json: &RawValue) -> Result<Self, &'static str> {
        values::parse_step_param(json)
    }
}

impl<'de, V: ParseParam> Deserialize<'de> for NamedParams<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ParamsVisitor<V>(std::marker::PhantomData<V>);

        impl<'de, V: ParseParam> serde::de::Visitor<'de> for ParamsVisitor<V> {
            type Value = NamedParams<V>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_unit<E>(self) -> Result<NamedParams<V>, E> {
                Ok(NamedParams::default())
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<NamedParams<V>, A::Error> {
                use serde::de::Error;
                let mut params = Vec::new();
                // Compared by hash: a hostile document has as many names as its bytes allow.
                let mut known = HashSet::new();
                while let Some(name) = map.next_key::<String>()? {
                    let value: Box<RawValue> = map.next_value()?;
                    let value = V::parse(&value)
                        .map_err(|why| A::Error::custom(format_args!("`{name}` {why}")))?;
                    if !known.insert(name.clone()) {
                        return Err(A::Error::custom(format_args!("`{name}` is named twice")));
                    }
                    params.push((name, value));
                }
                Ok(NamedParams(params))
            }
        }

        deserializer.deserialize_any(ParamsVisitor(std::marker::PhantomData))
    }
}
