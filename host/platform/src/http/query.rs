//! Query parameters: an unknown or malformed one is an error that names it.

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::de::DeserializeOwned;

use super::extract::invalid_request;
use super::problem::{Problem, ProblemCode};

/// Query parameters of a route below `/api/`: an unknown or malformed one is an error that names it.
#[derive(Clone, Copy, Debug)]
pub struct ApiQuery<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parse_query(parts.uri.query()).map(Self)
    }
}

impl<T: DeserializeOwned> ApiQuery<T> {
    /// Reads the parameters of a request whose path and authority are known.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn of(parts: &Parts) -> Result<T, Problem> {
        parse_query(parts.uri.query())
    }
}

pub(super) fn parse_query<T: DeserializeOwned>(query: Option<&str>) -> Result<T, Problem> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let pairs = serde_urlencoded::Deserializer::new(pairs);
    serde_path_to_error::deserialize(pairs).map_err(|error| {
        let path = error.path().to_string();
        let at = if path == "." {
            String::new()
        } else {
            format!("`{path}`: ")
        };
        invalid_request(format!("In the query: {at}{}.", error.into_inner()))
    })
}

/// A request below `/api/` that takes no query parameters: any is an error that names it.
#[derive(Clone, Copy, Debug)]
pub struct NoQueryParams;

impl NoQueryParams {
    pub(super) fn check(query: Option<&str>) -> Result<Self, Problem> {
        let first = query.filter(|q| !q.is_empty()).map(|query| {
            let pairs: Vec<(String, String)> =
                serde_urlencoded::from_str(query).unwrap_or_default();
            pairs
                .into_iter()
                .next()
                .map(|(name, _)| name)
                .unwrap_or_default()
        });
        match first {
            None => Ok(Self),
            Some(name) => Err(Problem::new(
                ProblemCode::InvalidRequest,
                format!("Unknown query parameter `{name}`: this route takes none."),
            )),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for NoQueryParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::check(parts.uri.query())
    }
}

/// Query parameters that are not parsed yet: the handler first checks that its target exists.
#[derive(Clone, Debug)]
pub struct UnparsedQuery(Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for UnparsedQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(parts.uri.query().map(str::to_owned)))
    }
}

impl UnparsedQuery {
    /// Parses the parameters.
    ///
    /// # Errors
    /// `invalid_request`, naming the parameter.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        parse_query(self.0.as_deref())
    }

    /// Refuses any parameter.
    ///
    /// # Errors
    /// `invalid_request`, naming the first.
    pub fn none(&self) -> Result<(), Problem> {
        NoQueryParams::check(self.0.as_deref()).map(|_| ())
    }
}
