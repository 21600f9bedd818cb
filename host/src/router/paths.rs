//! Which paths are for programs, which for browsers, which are private to their page, and which are answered without an end.

/// Whether a path is for programs alone: its errors are JSON problems, whatever the client accepts.
pub fn is_for_programs(path: &str) -> bool {
    let (first, second) = first_segments(path);
    is_platform(first) || matches!(second, "api" | "mcp" | "raw")
}

/// Whether the platform's own pages send forms to a path of the API.
pub fn takes_forms(path: &str) -> bool {
    path == "/api/v1/reports" || path.starts_with("/api/v1/auth/")
}

/// Whether only pages of the same origin may read the answers of a path.
pub fn is_same_origin_only(path: &str) -> bool {
    let (first, second) = first_segments(path);
    !is_platform(first) && matches!(second, "auth" | "payments")
}

fn is_platform(first: &str) -> bool {
    matches!(first, "api" | "mcp")
}

fn first_segments(path: &str) -> (&str, &str) {
    let mut segments = path.splitn(4, '/').skip(1);
    (
        segments.next().unwrap_or_default(),
        segments.next().unwrap_or_default(),
    )
}

/// Whether the answer of a path may be an endless stream: that of live queries, or that of a project's log.
pub fn may_be_stream(path: &str) -> bool {
    let log = path
        .strip_prefix("/api/v1/projects/")
        .and_then(|below| below.strip_suffix("/log"));
    path.ends_with("/api/live") || log.is_some_and(|project| !project.contains('/'))
}
