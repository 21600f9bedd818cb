//! Conversion of reached caps into problems.

use super::problem::{Problem, ProblemCode};
use crate::config::{CapReached, DividedCapPart};

impl From<CapReached> for Problem {
    fn from(CapReached { key, part }: CapReached) -> Self {
        let detail = match part {
            DividedCapPart::Whole => format!(
                "The server holds as much as `{key}` allows. Try again later, or ask the operator for a larger cap."
            ),
            DividedCapPart::Strangers => format!(
                "What is left of `{key}` is kept for owners. Try again later, or send the credential of a workspace that the part is kept for."
            ),
            DividedCapPart::Client => format!(
                "Your network holds as much as one client may of `{key}`. Delete something that you published, wait until some of it ends, or send a credential."
            ),
            DividedCapPart::Owner => format!(
                "You hold as much as one owner may of `{key}`: a workspace, or all free workspaces that one user made. Delete something first."
            ),
        };
        Self::new(ProblemCode::CapacityReached, detail)
            .with("cap", key)
            .with("part", part.as_str())
    }
}
