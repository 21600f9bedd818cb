//! Who listens: the one place where live queries ask about visitors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::HeaderMap;

use crate::backends::database::values::{Params, Value};
use crate::backends::model::{USER_EMAIL, USER_ID};

/// A signed-in visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Visitor {
    /// The visitor's id.
    pub(super) id: String,
    /// The verified address, if there is one.
    pub(super) email: Option<String>,
}

impl Visitor {
    /// The values of the binds that are the platform's.
    pub(super) fn binds(&self) -> Params {
        let email = self.email.clone().map_or(Value::Null, Value::Text);
        vec![
            (USER_ID.to_owned(), Value::Text(self.id.clone())),
            (USER_EMAIL.to_owned(), email),
        ]
    }
}

/// A sign-in that a connection was opened with.
#[derive(Debug)]
pub(super) struct Session {
    visitor: Arc<Visitor>,
    over: AtomicBool,
}

impl Session {
    /// The sign-in that a request's headers prove.
    pub(super) fn of(_: &HeaderMap) -> Option<Self> {
        None
    }

    /// Who is signed in, until that is over.
    pub(super) fn visitor(&self) -> Option<Arc<Visitor>> {
        let is_over = self.over.load(Ordering::Relaxed);
        (!is_over).then(|| Arc::clone(&self.visitor))
    }
}
