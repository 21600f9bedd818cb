//! Arguments of a tool call: each is taken by its name, and a leftover argument is an error that names it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use super::json_members::JsonMembers;
use crate::deployments::frontends::FrontendSelector;
use crate::http::extract::invalid_request;
use crate::http::problem::{Problem, ProblemCode};

/// Actions of a tool, as its argument `action` names them.
pub(super) trait ToolAction: Copy + Sized + 'static {
    /// All actions.
    const ALL: &'static [Self];

    /// Returns the name.
    fn name(self) -> &'static str;

    /// Returns all names, for the tool's schema.
    fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|action| action.name()).collect()
    }
}

/// Defines an enum of actions with their names.
macro_rules! actions {
    ($name:ident { $($variant:ident $text:literal,)+ }) => {
        #[derive(Clone, Copy, Debug)]
        pub(in crate::mcp) enum $name { $($variant,)+ }

        impl crate::mcp::arguments::ToolAction for $name {
            const ALL: &'static [Self] = &[$(Self::$variant,)+];

            fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}
pub(super) use actions;

/// Arguments that are not taken yet, as unparsed JSON, so that a tool refuses what REST refuses.
#[derive(Debug, Default)]
pub(super) struct ToolArguments {
    given: JsonMembers,
    /// Names of arguments that were null.
    nulls: Vec<String>,
}

impl ToolArguments {
    /// Reads the arguments of a call. A `null` of a known argument counts as absent, as in REST's bodies.
    ///
    /// # Errors
    /// `invalid_request` for a repeated argument; `invalid_json`.
    pub(super) fn read(
        arguments: &RawValue,
        takes: impl Fn(&str) -> bool,
    ) -> Result<Self, Problem> {
        let mut given: JsonMembers = parse(arguments.get())?;
        let nulls = given.0.iter().filter(|(_, value)| value.get() == "null");
        let nulls = nulls.map(|(name, _)| name.clone());
        let nulls: Vec<String> = nulls.filter(|name| takes(name)).collect();
        for name in &nulls {
            given.0.remove(name);
        }
        Ok(Self { given, nulls })
    }

    /// Whether an argument was given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.given.0.contains_key(name)
    }

    /// Whether the argument `type` names a site.
    pub(super) fn names_site(&self) -> bool {
        let named: Option<String> = self.given.get("type");
        named.is_some_and(|named| named == "site")
    }

    /// Whether an argument was null.
    pub(super) fn has_null(&self, name: &str) -> bool {
        self.nulls.iter().any(|null| null == name)
    }

    /// Sets an argument, as if the caller had sent it.
    pub(super) fn set(&mut self, name: &str, value: &impl Serialize) -> Result<(), Problem> {
        let json = to_raw_value(value).map_err(|error| Problem::internal(&error))?;
        self.given.0.insert(name.to_owned(), json);
        Ok(())
    }

    /// Takes an argument as unparsed JSON.
    fn take(&mut self, name: &str) -> Option<Box<RawValue>> {
        self.given.0.remove(name)
    }

    /// Takes the action.
    pub(super) fn action<A: ToolAction>(&mut self) -> Result<A, Problem> {
        let names = || A::names().join(", ");
        let name = match self.take("action") {
            None => {
                return Err(invalid_arguments(&format!(
                    "missing field `action`: it is one of {}",
                    names()
                )));
            }
            Some(name) => name,
        };
        let text: Option<String> = serde_json::from_str(name.get()).ok();
        let known = A::ALL
            .iter()
            .find(|action| text.as_deref() == Some(action.name()));
        known.copied().ok_or_else(|| {
            invalid_arguments(&format!(
                "`action` is one of {}, and {name} is none of them",
                names()
            ))
        })
    }

    /// Takes a required string.
    pub(super) fn required_text(&mut self, name: &str) -> Result<String, Problem> {
        match self.take(name) {
            Some(json) => serde_json::from_str(json.get())
                .map_err(|_| invalid_arguments(&format!("`{name}` must be a string"))),
            None => Err(invalid_arguments(&format!("missing field `{name}`"))),
        }
    }

    /// Takes a flag, which is false if absent.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool, Problem> {
        match self.take(name) {
            None => Ok(false),
            Some(json) => serde_json::from_str(json.get())
                .map_err(|_| invalid_arguments(&format!("`{name}` must be true or false"))),
        }
    }

    /// Takes an optional whole number.
    pub(super) fn count(&mut self, name: &str) -> Result<Option<usize>, Problem> {
        self.optional(name, "a whole number from 0")
    }

    /// Takes an optional argument; `what` names the expected type in an error.
    pub(super) fn optional<T: DeserializeOwned>(
        &mut self,
        name: &str,
        what: &str,
    ) -> Result<Option<T>, Problem> {
        let given = self.take(name).map(|json| serde_json::from_str(json.get()));
        given
            .transpose()
            .map_err(|_| invalid_arguments(&format!("`{name}` must be {what}")))
    }

    /// Takes the frontend's slug or id.
    pub(super) fn frontend(&mut self) -> Result<FrontendSelector, Problem> {
        let name = match (self.has("slug"), self.has("id")) {
            (true, true) => {
                return Err(invalid_arguments(
                    "`slug` and `id` both name the frontend: send one of them",
                ));
            }
            (_, true) => "id",
            (true, false) => "slug",
            (false, false) => {
                return Err(invalid_arguments(
                    "missing field `slug`: name the frontend by its `slug` or its `id`",
                ));
            }
        };
        Ok(FrontendSelector::from(self.required_text(name)?.as_str()))
    }

    /// Parses the remaining arguments as the body of the REST call.
    pub(super) fn parse_rest<T: DeserializeOwned>(self) -> Result<T, Problem> {
        self.parse_rest_or(|problem, _| problem)
    }

    /// Parses the remaining arguments like [`ToolArguments::parse_rest`]. What does not fit is told by `refuse`, which has the JSON, too.
    pub(super) fn parse_rest_or<T: DeserializeOwned>(
        self,
        refuse: impl FnOnce(Problem, &[u8]) -> Problem,
    ) -> Result<T, Problem> {
        let body = serde_json::to_string(&self.given).map_err(|error| Problem::internal(&error))?;
        parse(&body).map_err(|problem| refuse(problem, body.as_bytes()))
    }

    /// Refuses arguments that are left over.
    pub(super) fn expect_none_left(self) -> Result<(), Problem> {
        match self.given.0.keys().next() {
            Some(name) => Err(invalid_arguments(&format!("this action takes no `{name}`"))),
            None => Ok(()),
        }
    }
}

/// Parses JSON that is known to be well-formed.
pub(super) fn parse<T: DeserializeOwned>(json: &str) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let error = error.into_inner();
        // The position refers to a text that the caller did not write, so it is removed.
        let place = format!(" at line {} column {}", error.line(), error.column());
        let why = error.to_string();
        let why = why.strip_suffix(&place).unwrap_or(&why);
        let why = match path.as_str() {
            "." => why.to_owned(),
            path => format!("`{path}`: {why}"),
        };
        // A number out of range is valid JSON.
        if error.is_syntax() && !why.ends_with("number out of range") {
            return Problem::new(
                ProblemCode::InvalidJson,
                format!("The arguments are not valid JSON: {why}."),
            );
        }
        invalid_arguments(&why)
    })
}

fn invalid_arguments(why: &str) -> Problem {
    invalid_request(format!("In the arguments: {why}."))
}
