//! Views that answers about shares and frontends have in common.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use svc_sandbox::UndrawnDiagram;

/// Something about a page that is published all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Warning {
    /// Code of the warning: `diagram_not_drawn`, and of sites `case_collision` and `path_hidden`.
    #[schema(value_type = String)]
    pub code: Cow<'static, str>,
    /// Description of the fault.
    pub detail: String,
    /// The line of the source, from 1; absent where the warning is about no line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Warning {
    /// Returns warnings as a row keeps them; none if there are none.
    pub(super) fn to_row(warnings: &[Self]) -> Option<String> {
        match warnings {
            [] => None,
            warnings => serde_json::to_string(warnings).ok(),
        }
    }

    /// Reads the warnings that a row keeps.
    pub(super) fn from_row(text: Option<String>) -> Vec<Self> {
        let read = text.and_then(|text| serde_json::from_str(&text).ok());
        read.unwrap_or_default()
    }
}

impl From<UndrawnDiagram> for Warning {
    fn from(undrawn: UndrawnDiagram) -> Self {
        Self {
            code: "diagram_not_drawn".into(),
            detail: undrawn.reason,
            line: Some(undrawn.line),
        }
    }
}
