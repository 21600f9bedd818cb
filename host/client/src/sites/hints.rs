//! Hints for who has published a folder: files that call the project and load no runtime, and addresses that begin at the root of a
//! host, where the site is not.

use url::Url;

use super::folder::SiteFolder;
use super::texts::name_some;

/// Most files that are looked at, and most bytes of each.
const MAX_FILES: usize = 2_000;
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Most addresses of a file that are counted.
const MAX_ADDRESSES: usize = 100;
/// Script that makes `svc` known.
const RUNTIME: &str = "_svc/runtime.js";
/// Calls of the runtime.
const CALLS: [&str; 4] = ["svc.db.", "svc.ws.", "svc.auth.", "svc.payments."];
/// Places before an address in HTML and CSS.
const BEFORE_ADDRESS: [&str; 3] = ["src=", "href=", "url("];
/// Endings of documents, and of scripts.
const DOCUMENTS: [&str; 2] = ["html", "htm"];
const SCRIPTS: [&str; 2] = ["js", "mjs"];

/// An address that begins at the root of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RootAddress {
    file: String,
    line: usize,
    address: String,
}

/// Returns hints about a site that answers at a URL. A quick share has no database, and never answers at a root.
pub(crate) fn publishing_hints(
    site: &SiteFolder,
    slug: &str,
    url: &str,
    is_share: bool,
) -> Vec<String> {
    let (mut callers, mut loads_runtime, mut found) = (Vec::new(), false, Vec::new());
    let is_at_root = Url::parse(url).is_ok_and(|url| url.path() == "/");
    for (path, text) in texts(site) {
        loads_runtime |= text.contains(RUNTIME);
        if calls_runtime(&text) {
            callers.push(path);
        }
        if !is_at_root {
            found.extend(root_addresses(site, path, &text, slug));
        }
    }
    let mut hints = Vec::new();
    if !site.files.contains_key("index.html") {
        hints.push(format!(
            "warning: there is no index.html, which the address itself shows: the files are at {}/PATH.",
            url.trim_end_matches('/')
        ));
    }
    if !is_share && !loads_runtime && !callers.is_empty() {
        let script = match is_at_root {
            true => format!("/{RUNTIME}"),
            false => format!("/{slug}/{RUNTIME}"),
        };
        let calls = if callers.len() == 1 { "calls" } else { "call" };
        hints.push(format!(
            "warning: {} {calls} `svc`, and no page loads it: put <script src=\"{script}\"></script> before your scripts.",
            name_some(callers.into_iter())
        ));
    }
    hints.extend(
        found
            .first()
            .map(|first| root_hint(first, found.len(), slug, is_share)),
    );
    hints
}

/// Lists the texts of a site that may name others.
fn texts(site: &SiteFolder) -> impl Iterator<Item = (&str, String)> {
    let files = site.files.iter().filter(|(path, file)| {
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
        let is_text = DOCUMENTS.contains(&ending) || SCRIPTS.contains(&ending) || ending == "css";
        is_text && file.bytes <= MAX_FILE_BYTES
    });
    files.take(MAX_FILES).filter_map(|(path, _)| {
        let text = String::from_utf8(site.read_file(path).ok()?).ok()?;
        Some((path.as_str(), text))
    })
}

/// Whether a text calls the runtime. `mysvc.db.` is another's.
fn calls_runtime(text: &str) -> bool {
    let is_own = |at: usize| {
        let before = text[..at].chars().next_back();
        !before
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '-' | '/' | '@'))
    };
    CALLS
        .iter()
        .any(|call| text.match_indices(call).any(|(at, _)| is_own(at)))
}

/// Lists the addresses in a text that begin at the root of the host, and name a file of the site.
fn root_addresses(site: &SiteFolder, path: &str, text: &str, slug: &str) -> Vec<RootAddress> {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    if SCRIPTS.contains(&ending) {
        return Vec::new();
    }
    let places = BEFORE_ADDRESS
        .iter()
        .flat_map(|before| text.match_indices(before).map(|(at, _)| at + before.len()));
    let mut places: Vec<_> = places.collect();
    places.sort_unstable();
    let found = places.into_iter().filter_map(|at| {
        let rest = text[at..].trim_start_matches(['"', '\'']);
        let address = rest.split(['"', '\'', ' ', '>', ')', '\n']).next()?;
        let file = address.strip_prefix('/')?.split(['?', '#']).next()?;
        let is_mounted = file == slug || file.starts_with(&format!("{slug}/"));
        (!is_mounted && has_address(site, file)).then(|| RootAddress {
            file: site.path.join(path).display().to_string(),
            line: text[..at].matches('\n').count() + 1,
            address: address.to_owned(),
        })
    });
    found.take(MAX_ADDRESSES).collect()
}

/// Whether a site has a file at a path, as its visitors write it.
fn has_address(site: &SiteFolder, path: &str) -> bool {
    let folder = path.trim_end_matches('/');
    let has = |name: &str| site.files.contains_key(name);
    match folder {
        "" => has("index.html"),
        _ => has(path) || has(&format!("{folder}.html")) || has(&format!("{folder}/index.html")),
    }
}

fn root_hint(first: &RootAddress, count: usize, slug: &str, is_share: bool) -> String {
    let RootAddress {
        file,
        line,
        address,
    } = first;
    let place = format!("{file}:{line}");
    let more = match count - 1 {
        0 => String::new(),
        more => format!(" ({more} more)"),
    };
    let remedy = match is_share {
        true => {
            "Have the build write relative addresses, as Vite does with `base: \"./\"`.".to_owned()
        }
        false => format!(
            "They work at the root: make the site the project's home with `svc project update --home {slug}`, or `home = \"{slug}\"` in svc.toml. Or have the build write relative addresses."
        ),
    };
    let named = name_some([address.as_str()].into_iter());
    format!(
        "warning: {} names `{named}`{more}, an address at the root of the host, and the site answers below /{slug}/. {remedy}",
        name_some([place.as_str()].into_iter())
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::super::folder::LocalFile;
    use super::*;

    fn site(files: &[(&str, &str)]) -> SiteFolder {
        let files = files.iter().map(|(path, text)| {
            let file = LocalFile::of_bytes(text.as_bytes());
            ((*path).to_owned(), file)
        });
        SiteFolder::of_files(Path::new("dist"), files.collect::<BTreeMap<_, _>>())
    }

    const BELOW: &str = "https://shop.example/app";
    const ROOT: &str = "https://shop.example/";

    #[test]
    fn who_calls_the_project_is_told_of_the_runtime() {
        let page = "<script src=app.js></script>";
        for (script, loads, is_told) in [
            ("svc.db.op('a')", "", true),
            ("await(svc.ws.room('x'))", "", true),
            ("mysvc.db.op()", "", false),
            ("a.svc.db.op()", "", false),
            ("fetch('https://svc.auth.example')", "", false),
            (
                "svc.db.op('a')",
                "<script src=\"/app/_svc/runtime.js\"></script>",
                false,
            ),
            ("run()", "", false),
        ] {
            let site = site(&[
                ("index.html", &format!("{page}{loads}")),
                ("app.js", script),
            ]);
            let hints = publishing_hints(&site, "app", BELOW, false);
            assert_eq!(!hints.is_empty(), is_told, "{script} {loads}: {hints:?}");
            assert!(publishing_hints(&site, "app", BELOW, true).is_empty());
        }
    }

    #[test]
    fn addresses_at_the_root_are_named_where_the_site_is_not_there() {
        let page = "<!doctype html>\n<link href='/assets/a.css'><script src=\"/assets/a.js?v=1\"></script><a href=//cdn.example/x>";
        let files = [
            ("index.html", page),
            ("assets/a.js", ""),
            ("assets/a.css", ""),
        ];
        let hints = publishing_hints(&site(&files), "app", BELOW, false);
        assert_eq!(hints.len(), 1, "{hints:?}");
        assert!(
            hints[0].contains("dist/index.html:2 names `/assets/a.css` (1 more)"),
            "{hints:?}"
        );
        assert!(publishing_hints(&site(&files), "app", ROOT, false).is_empty());
        let share = publishing_hints(&site(&files), "app", BELOW, true);
        assert!(share[0].contains("relative"), "{share:?}");
        for (page, is_told) in [
            ("<a href=/docs/intro>", true),
            ("<a href=\"/docs/\">", true),
            ("<a href=\"/other\">", false),
            ("<a href=\"/app/docs/intro\">", false),
            ("<img src=a.png>", false),
        ] {
            let site = site(&[
                ("index.html", page),
                ("docs/intro.html", ""),
                ("docs/index.html", ""),
            ]);
            let hints = publishing_hints(&site, "app", BELOW, false);
            assert_eq!(!hints.is_empty(), is_told, "{page}: {hints:?}");
        }
    }
}
