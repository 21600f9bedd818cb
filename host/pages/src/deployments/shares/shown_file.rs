//! One file as a site of its own: the file as it was sent, and a page that shows it.
//!
//! Nothing looks into the file. The page says its name and nothing else of it, and browsers do with its bytes what its ending says.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::deployments::files::{NewSite, NewSiteFile};
use crate::deployments::sites::{SiteOptions, path_fault, url_path};
use crate::http::problem_page::{STYLE, TOKEN_STYLE};
use svc_sources::media::MediaKind;

/// Styles of the page.
const PAGE_STYLE: &str = include_str!("../../../../assets/shown-file.css");
/// Path of the page.
const PAGE_PATH: &str = "index.html";

/// Returns the site of a file with a name, which its sender has chosen.
pub(super) fn site_of_file(
    (name, title): (&str, &str),
    (extension, kind): (&'static str, MediaKind),
    bytes: Bytes,
) -> NewSite {
    let path = file_path(name, extension);
    let page = page((name, title), kind, &path).into_string();
    NewSite {
        files: BTreeMap::from([
            (PAGE_PATH.to_owned(), NewSiteFile::Inline(page.into())),
            (path, NewSiteFile::Inline(bytes)),
        ]),
        options: SiteOptions::default(),
        deleted: BTreeSet::new(),
    }
}

/// Returns the path of the file: its name, if that can be one.
fn file_path(name: &str, extension: &str) -> String {
    match name.contains('/') || path_fault(name).is_some() {
        true => format!("file.{extension}"),
        false => name.to_owned(),
    }
}

/// Makes the page of a file.
fn page((name, title): (&str, &str), kind: MediaKind, path: &str) -> Markup {
    let address = url_path(path);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                meta property="og:title" content=(title);
                meta property="og:type" content="website";
                style { (PreEscaped(TOKEN_STYLE)) (PreEscaped(STYLE)) (PreEscaped(PAGE_STYLE)) }
            }
            body {
                main {
                    figure {
                        @match kind {
                            MediaKind::Picture => { img src=(address) alt=(title); }
                            MediaKind::Sound => { audio src=(address) controls preload="metadata" aria-label=(title) {} }
                            MediaKind::Video => { video src=(address) controls playsinline preload="metadata" aria-label=(title) {} }
                            MediaKind::Paper => { h1 dir="auto" { (title) } }
                        }
                        figcaption {
                            @match kind {
                                MediaKind::Paper => { a href=(address) download=(name) dir="auto" { "Download " (name) } }
                                _ => { a href=(address) dir="auto" { (name) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_path_or_nothing() {
        for (name, path) in [
            ("photo.png", "photo.png"),
            (
                "a photo's \"best\" <one>.PNG",
                "a photo's \"best\" <one>.PNG",
            ),
            ("../photo.png", "file.png"),
            ("a/photo.png", "file.png"),
            (".png", "file.png"),
            ("a\\b.png", "file.png"),
            ("a\nb.png", "file.png"),
            ("e\u{301}.png", "file.png"),
        ] {
            assert_eq!(file_path(name, "png"), path, "{name}");
        }
    }

    #[test]
    fn a_hostile_name_is_text() {
        let name = "\"><script>alert(1)</script>?#%.png";
        for (_, kind) in svc_sources::media::MEDIA_EXTENSIONS {
            let page = page((name, name), kind, name).into_string();
            assert!(!page.contains("<script"), "{page}");
            assert!(page.contains("%22%3E%3Cscript%3E"), "{page}");
            assert!(page.contains("%3F%23%25.png"), "{page}");
        }
    }
}
