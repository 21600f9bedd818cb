//! Errors of blocked content as problems.

use super::ContentBlocked;
use crate::http::problem::{Problem, ProblemCode};

impl From<ContentBlocked> for Problem {
    fn from(blocked: ContentBlocked) -> Self {
        Self::from(&blocked)
    }
}

impl From<&ContentBlocked> for Problem {
    fn from(blocked: &ContentBlocked) -> Self {
        let ContentBlocked { digest, path } = blocked;
        let what = match path {
            Some(path) => format!("The file `{path}`"),
            None => "The content".to_owned(),
        };
        let problem = Self::new(
            ProblemCode::ContentBlocked,
            format!("{what} is blocked by the operator of this server. Nothing was changed: leave it out."),
        )
        .with("sha256", digest.to_string());
        match path {
            Some(path) => problem.with("path", path.clone()),
            None => problem,
        }
    }
}
