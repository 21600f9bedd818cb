//! Steps of a plan, and the lines that show them.

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlanStep {
    /// Makes the project.
    CreateProject,
    /// Makes the backend from the first migration.
    CreateBackend,
    /// Applies the migration of this number, from 0.
    Migrate(usize),
    /// Defines the actions of these numbers.
    DefineActions(Vec<usize>),
    /// Opens or closes the rooms.
    SwitchRooms(bool),
    /// Offers agents the actions as tools, or offers them no more.
    SwitchTools(bool),
    /// Makes the page of this number.
    CreatePage(usize),
    /// Changes the page of this number, which has this slug on the server and this source.
    ChangePage {
        page: usize,
        slug: String,
        live: Option<String>,
    },
    /// Changes the project's description or home.
    UpdateProject,
}

impl PlanStep {
    /// The point at which it is done, for tests that end the process there.
    pub(super) fn fault_point(&self) -> &'static str {
        match self {
            Self::CreateProject => "apply.project",
            Self::CreateBackend => "apply.backend",
            Self::Migrate(_) => "apply.migration",
            Self::DefineActions(_) => "apply.actions",
            Self::SwitchRooms(_) => "apply.rooms",
            Self::SwitchTools(_) => "apply.tools",
            Self::CreatePage(_) => "apply.page",
            Self::ChangePage { .. } => "apply.change",
            Self::UpdateProject => "apply.about",
        }
    }
}

/// A thing that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlanLine {
    pub(super) is_new: bool,
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) detail: String,
}
