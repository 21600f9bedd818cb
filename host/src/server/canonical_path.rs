//! Canonical form of paths: what the router compares, and what one node tells another.

use http::Uri;
use http::uri::PathAndQuery;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::deployments::sites::{PathFault, path_fault};
use crate::http::problem::Problem;

/// Characters that stay unencoded in a path segment: RFC 3986's unreserved ones.
const ESCAPED_IN_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Returns the canonical form of a path, percent-decoded once; `None` if the path has it already. Encoded slashes are refused.
pub(super) fn canonicalize(path: &str) -> Result<Option<String>, Problem> {
    let odd = |segment: &str| matches!(segment, "." | "..");
    let plain = !path.contains('%') && !path.contains("//") && !path.contains("/.");
    if plain {
        return Ok(None);
    }
    let mut canonical = String::with_capacity(path.len());
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for (index, segment) in segments.iter().enumerate() {
        let decoded = percent_decode_str(segment)
            .decode_utf8()
            .map_err(|_| Problem::not_found())?;
        let empty = decoded.is_empty() && index + 1 < segments.len();
        if empty
            || odd(&decoded)
            || decoded.contains(['/', '\\'])
            || decoded.contains(char::is_control)
        {
            return Err(Problem::not_found());
        }
        canonical.push('/');
        canonical.extend(utf8_percent_encode(&decoded, ESCAPED_IN_SEGMENT));
    }
    Ok(Some(canonical))
}

/// Returns the folder of a path that has no canonical form for an empty segment, or one with an encoded slash or backslash: what
/// comes before the first such segment, in canonical form. `None` for all other paths.
pub(super) fn folder_of_odd_path(path: &str) -> Option<String> {
    if !path.contains('%') && !path.contains("//") {
        return None;
    }
    let mut folder = String::from("/");
    let mut is_odd = false;
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let decoded = percent_decode_str(segment).decode_utf8().ok()?;
        if matches!(&*decoded, "." | "..") || decoded.contains(char::is_control) {
            return None;
        }
        let is_last = segments.peek().is_none();
        is_odd |= decoded.contains(['/', '\\']) || (decoded.is_empty() && !is_last);
        if !is_odd && !is_last {
            folder.extend(utf8_percent_encode(&decoded, ESCAPED_IN_SEGMENT));
            folder.push('/');
        }
    }
    is_odd.then_some(folder)
}

/// Explains the path of a site's file, in an address of the API that has no canonical form; `None` for any other address.
pub(super) fn refused_file(path: &str) -> Option<Problem> {
    let mut segments = path.strip_prefix("/api/v1/projects/")?.splitn(5, '/');
    let (_, frontends, _, files) = (
        segments.next()?,
        segments.next()?,
        segments.next()?,
        segments.next()?,
    );
    let encoded = segments.next()?;
    if (frontends, files) != ("frontends", "files") {
        return None;
    }
    let decoded = percent_decode_str(encoded);
    let reason = match decoded.clone().decode_utf8() {
        Ok(path) => path_fault(&path).unwrap_or("has an encoded slash: write it as it is"),
        Err(_) => "is no text in UTF-8",
    };
    let path = decoded.decode_utf8_lossy().into_owned();
    Some(PathFault { path, reason }.into())
}

/// Returns a target with another path.
pub(super) fn with_path(uri: &Uri, path: &str) -> Result<Uri, Problem> {
    let path_and_query = match uri.query() {
        Some(query) => PathAndQuery::try_from(format!("{path}?{query}")),
        None => PathAndQuery::try_from(path),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path_and_query.map_err(|_| Problem::not_found())?);
    Uri::from_parts(parts).map_err(|_| Problem::not_found())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_a_form_may_have_a_folder() {
        for (path, folder) in [
            ("/a/b", None),
            ("/%61/b", None),
            ("/a/", None),
            ("/site//a", Some("/site/")),
            ("/site/caf%C3%A9/a%2Fb/c", Some("/site/caf%C3%A9/")),
            ("/site/%64ocs/a%5Cb", Some("/site/docs/")),
            ("//a", Some("/")),
            ("/a%2fb", Some("/")),
            // These are nobody's.
            ("/site/..//a", None),
            ("/site/a%2Fb/%2e%2e/c", None),
            ("/site//%00", None),
            ("/site//%ff", None),
        ] {
            assert_eq!(folder_of_odd_path(path).as_deref(), folder, "{path}");
            assert!(folder.is_none() || canonicalize(path).is_err(), "{path}");
        }
    }

    #[test]
    fn paths_of_files_are_refused_with_a_reason() {
        for (file, said) in [
            ("a%5Cb", "backslash"),
            ("a//b", "empty segment"),
            ("%2e%2e/x", "`..`"),
            ("a/./b", "`..`"),
            ("a%00b", "control character"),
            ("a%2Fb", "encoded slash"),
            ("%ff", "UTF-8"),
        ] {
            let path = format!("/api/v1/projects/p/frontends/site/files/{file}");
            assert!(canonicalize(&path).is_err(), "{file}");
            let problem = refused_file(&path).unwrap();
            let document = problem.document("http://a.example", "r").to_json();
            assert!(document.contains("path_refused"), "{document}");
            assert!(document.contains(said), "{file}: {document}");
        }
        for path in [
            "/api/v1/projects/p/frontends/site/content//",
            "/api/v1/projects/p/frontends//site/files/a",
            "/api/v1/projects/p/frontends/site/files",
            "/site/files/a//b",
        ] {
            assert!(refused_file(path).is_none(), "{path}");
        }
    }

    #[test]
    fn paths_have_one_form() {
        for (path, expected) in [
            ("/a/b", Ok(None)),
            ("/a/", Ok(None)),
            ("/%61pi/v1", Ok(Some("/api/v1"))),
            ("/a/%2561", Ok(Some("/a/%2561"))),
            ("/caf%C3%A9", Ok(Some("/caf%C3%A9"))),
            ("/a%2Fb", Err(())),
            ("/a%5cb", Err(())),
            ("//a", Err(())),
            ("/a//b", Err(())),
            ("/./a", Err(())),
            ("/../a", Err(())),
            ("/%2e%2e/a", Err(())),
            ("/%ff", Err(())),
            ("/%00", Err(())),
            ("/.well-known/x", Ok(Some("/.well-known/x"))),
        ] {
            let found = canonicalize(path).map_err(|_| ());
            assert_eq!(
                found.as_ref().map(|p| p.as_deref()),
                expected.as_ref().map(|p| *p),
                "{path}"
            );
        }
    }
}
