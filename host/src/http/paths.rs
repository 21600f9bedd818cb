//! Which paths are for programs, which for browsers, and which are private to their page.

/// Whether a path is for programs alone: its errors are problems, whatever a client accepts.
pub fn is_for_programs(path: &str) -> bool {
    let (first, second) = first_segments(path);
    is_platform(first) || matches!(second, "api" | "mcp" | "raw")
}

/// Whether people send forms to a path of the API, from the platform's own pages.
pub fn takes_forms(path: &str) -> bool {
    path == "/api/v1/reports" || path.starts_with("/api/v1/auth/")
}

/// Whether only pages of its own origin may read what a path answers.
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

/// Whether a path is that of live queries, whose answer may have no end.
pub fn is_live_query(path: &str) -> bool {
    path.ends_with("/api/live")
}
