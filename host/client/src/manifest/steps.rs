//! Steps of a plan, and the lines that describe them.

/// A change on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlanStep {
    /// Makes the project.
    CreateProject,
    /// Makes the backend from the first migration.
    CreateBackend,
    /// Applies the migration of this index.
    Migrate(usize),
    /// Defines the actions of these indexes.
    DefineActions(Vec<usize>),
    /// Opens or closes the rooms.
    SwitchRooms(bool),
    /// Offers the actions to agents as tools, or stops that.
    SwitchTools(bool),
    /// Makes the page of this index.
    CreatePage(usize),
    /// Changes the page of this index. It has this slug and this live source on the server.
    ChangePage {
        page: usize,
        slug: String,
        live: Option<String>,
    },
    /// Changes the project's description or home.
    UpdateProject,
}

impl PlanStep {
    /// Name of the fault point after the step, at which tests end the process.
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

/// Description of a change, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlanLine {
    pub(super) is_new: bool,
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) detail: String,
}
