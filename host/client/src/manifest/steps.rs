//! Steps of a plan, and the lines that show them.

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Makes the project.
    Project,
    /// Makes the backend from the first migration.
    Backend,
    /// Applies the migration of this number, from 0.
    Migrate(usize),
    /// Defines the actions of these numbers.
    Actions(Vec<usize>),
    /// Opens or closes the rooms.
    Realtime(bool),
    /// Offers agents the actions as tools, or offers them no more.
    Agents(bool),
    /// Makes the page of this number.
    Page(usize),
    /// Changes the page of this number, which has this slug on the server and this source.
    Change {
        page: usize,
        slug: String,
        live: Option<String>,
    },
    /// Changes the project's description or home.
    About,
}

impl Step {
    /// The point at which it is done, for tests that end the process there.
    pub(super) fn fault_point(&self) -> &'static str {
        match self {
            Self::Project => "apply.project",
            Self::Backend => "apply.backend",
            Self::Migrate(_) => "apply.migration",
            Self::Actions(_) => "apply.actions",
            Self::Realtime(_) => "apply.rooms",
            Self::Agents(_) => "apply.tools",
            Self::Page(_) => "apply.page",
            Self::Change { .. } => "apply.change",
            Self::About => "apply.about",
        }
    }
}

/// A thing that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlanLine {
    pub(super) new: bool,
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) more: String,
}
