//! Views that answers about shares and frontends have in common.

use serde::Serialize;
use utoipa::ToSchema;

use svc_sandbox::UndrawnDiagram;

/// Something about a page that is published all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Warning {
    /// Code of the warning: `diagram_not_drawn`, and of sites `case_collision` and `path_hidden`.
    pub code: &'static str,
    /// Description of the fault.
    pub detail: String,
    /// The line of the source, from 1; absent where the warning is about no line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl From<UndrawnDiagram> for Warning {
    fn from(undrawn: UndrawnDiagram) -> Self {
        Self {
            code: "diagram_not_drawn",
            detail: undrawn.reason,
            line: Some(undrawn.line),
        }
    }
}
