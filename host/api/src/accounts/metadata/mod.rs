//! OAuth metadata of the API, as a protected resource.

pub mod routes;
