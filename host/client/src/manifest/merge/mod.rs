//! Decision about one part of a project: a page, an action, a price or a setting. It compares what the folder has, what the server has,
//! and what both had when they last met.

/// Decision about one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Both have the same, or neither has the part.
    Same,
    /// The folder has changed it: the server gets the folder's.
    Apply,
    /// The folder has it no more, and the server still has what both had.
    End,
    /// Only the server has changed it.
    ServerNewer,
    /// Both have changed it.
    Conflict,
    /// The folder has what the server had earlier.
    Stale,
    /// Only the server has it, and the folder never had.
    OnlyServer,
}

/// State of a part when the folder and the server last met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastMeeting<T> {
    /// Nobody has written down when that was.
    Unknown,
    /// Text that both had; `None` for a part that was not there.
    With(Option<T>),
}

/// Decides about a part. `earlier` is what the server had of it before; it counts where no meeting is known.
pub(super) fn decide<T: PartialEq>(
    local: Option<&T>,
    met: LastMeeting<&T>,
    remote: Option<&T>,
    earlier: &[T],
) -> Decision {
    match (local, met, remote) {
        (local, _, remote) if local == remote => Decision::Same,
        (None, LastMeeting::Unknown, _) => Decision::OnlyServer,
        (Some(local), LastMeeting::Unknown, Some(_)) if earlier.contains(local) => Decision::Stale,
        (Some(_), LastMeeting::Unknown, _) => Decision::Apply,
        (None, LastMeeting::With(None), _) => Decision::OnlyServer,
        (local, LastMeeting::With(both), _) if local == both => Decision::ServerNewer,
        (None, LastMeeting::With(both), remote) if remote == both => Decision::End,
        (_, LastMeeting::With(both), remote) if remote == both => Decision::Apply,
        _ => Decision::Conflict,
    }
}

/// Whether the decision about a part depends on what the server had before.
pub(super) fn needs_history<T: PartialEq>(
    local: Option<&T>,
    met: LastMeeting<&T>,
    remote: Option<&T>,
) -> bool {
    matches!(met, LastMeeting::Unknown) && local.is_some() && remote.is_some() && local != remote
}

/// Rule for the parts that the folder and the server have differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precedence {
    /// A conflict is refused.
    Refuse,
    /// The folder's counts where both have changed, and where it is older. What only the server has changed is left alone.
    FolderInConflicts,
    /// The folder's counts: the server is for this folder alone.
    Folder,
}

impl Precedence {
    /// Whether the folder's counts also where it has an earlier text, so that no history is needed.
    pub(super) fn takes_older(self) -> bool {
        self != Self::Refuse
    }
}

impl Decision {
    /// Decision by a rule for what differs.
    pub(super) fn by(self, rule: Precedence, is_in_folder: bool) -> Self {
        match (self, rule) {
            (decision, Precedence::Refuse) => decision,
            (Self::Conflict | Self::Stale, _) if is_in_folder => Self::Apply,
            (Self::Conflict, _) => Self::End,
            (Self::ServerNewer, Precedence::Folder) if is_in_folder => Self::Apply,
            (decision, _) => decision,
        }
    }
}

#[cfg(test)]
mod tests;
