//! Arguments of a call: each is taken by its name, and what is left over is an error that names it.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::deployments::frontends::Target;
use crate::http::extract::invalid;
use crate::http::problem::Problem;

/// What a tool can do, named by its argument `action`.
pub(super) trait Action: Copy + Sized + 'static {
    /// All of them.
    const ALL: &'static [Self];

    /// Its name.
    fn name(self) -> &'static str;

    /// All names, for the tool's schema.
    fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|action| action.name()).collect()
    }
}

/// An enum of actions with their names.
macro_rules! actions {
    ($name:ident { $($variant:ident $text:literal,)+ }) => {
        #[derive(Clone, Copy, Debug)]
        enum $name { $($variant,)+ }

        impl crate::mcp::arguments::Action for $name {
            const ALL: &'static [Self] = &[$(Self::$variant,)+];

            fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}
pub(super) use actions;

/// The arguments that nobody has taken yet.
#[derive(Debug)]
pub(super) struct Arguments(Map<String, Value>);

impl Arguments {
    /// All arguments of a call. A `null` is an absence, as in REST's bodies.
    pub(super) fn new(arguments: Map<String, Value>) -> Self {
        let given = arguments.into_iter().filter(|(_, value)| !value.is_null());
        Self(given.collect())
    }

    /// Whether an argument was given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Gives an argument, as if the caller had.
    pub(super) fn give(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// Takes the action.
    pub(super) fn action<A: Action>(&mut self) -> Result<A, Problem> {
        let names = || A::names().join(", ");
        let name = match self.0.remove("action") {
            None => {
                return Err(wrong(&format!(
                    "missing field `action`: it is one of {}",
                    names()
                )));
            }
            Some(name) => name,
        };
        let known = A::ALL
            .iter()
            .find(|action| name.as_str() == Some(action.name()));
        known.copied().ok_or_else(|| {
            wrong(&format!(
                "`action` is one of {}, and {name} is none of them",
                names()
            ))
        })
    }

    /// Takes a text that must be there.
    pub(super) fn text(&mut self, name: &str) -> Result<String, Problem> {
        match self.0.remove(name) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(wrong(&format!("`{name}` must be a string"))),
            None => Err(wrong(&format!("missing field `{name}`"))),
        }
    }

    /// Takes a flag, which is false if it is not there.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool, Problem> {
        match self.0.remove(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(wrong(&format!("`{name}` must be true or false"))),
        }
    }

    /// Takes a count that may be there.
    pub(super) fn count(&mut self, name: &str) -> Result<Option<usize>, Problem> {
        let Some(value) = self.0.remove(name) else {
            return Ok(None);
        };
        let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
        count
            .map(Some)
            .ok_or_else(|| wrong(&format!("`{name}` must be a whole number from 0")))
    }

    /// Takes the frontend that is meant: its slug or its id.
    pub(super) fn frontend(&mut self) -> Result<Target, Problem> {
        let name = match (self.has("slug"), self.has("id")) {
            (true, true) => {
                return Err(wrong(
                    "`slug` and `id` both name the frontend: send one of them",
                ));
            }
            (_, true) => "id",
            (true, false) => "slug",
            (false, false) => {
                return Err(wrong(
                    "missing field `slug`: name the frontend by its `slug` or its `id`",
                ));
            }
        };
        Ok(Target::from(self.text(name)?.as_str()))
    }

    /// Reads the rest as the body that REST takes.
    pub(super) fn rest<T: DeserializeOwned>(self) -> Result<T, Problem> {
        serde_path_to_error::deserialize(Value::Object(self.0)).map_err(|error| {
            let path = error.path().to_string();
            let error = error.into_inner();
            if path == "." {
                wrong(&error.to_string())
            } else {
                wrong(&format!("`{path}`: {error}"))
            }
        })
    }

    /// Refuses any that is left.
    pub(super) fn none(self) -> Result<(), Problem> {
        match self.0.keys().next() {
            Some(name) => Err(wrong(&format!("this action takes no `{name}`"))),
            None => Ok(()),
        }
    }
}

fn wrong(why: &str) -> Problem {
    invalid(format!("In the arguments: {why}."))
}
