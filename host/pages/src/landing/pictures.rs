//! Screenshots of examples for the landing page: real pages of this service, which `just screenshots` takes.

use std::io;

use bytes::Bytes;
use http::HeaderValue;
use maud::{Markup, html};

use super::{CACHE_ONE_DAY, headers};
use crate::http::document::EncodedDocument;

/// Size of each picture, in CSS pixels.
const PICTURE_SIZE: (u32, u32) = (640, 400);

/// An example with its pictures.
struct LandingExample {
    /// Name of its pictures.
    name: &'static str,
    light: &'static [u8],
    dark: &'static [u8],
    /// Text for those who do not see the picture.
    alt: &'static str,
    title: &'static str,
    about: &'static str,
    /// Guide that says how it is made.
    guide: &'static str,
    guide_title: &'static str,
}

macro_rules! pictures {
    ($name:literal) => {
        (
            include_bytes!(concat!("../../../assets/landing/pictures/", $name, ".webp")).as_slice(),
            include_bytes!(concat!(
                "../../../assets/landing/pictures/",
                $name,
                "-dark.webp"
            ))
            .as_slice(),
        )
    };
}

const PAGE_PICTURES: (&[u8], &[u8]) = pictures!("page");
const APP_PICTURES: (&[u8], &[u8]) = pictures!("app");
const PROJECT_PICTURES: (&[u8], &[u8]) = pictures!("project");

const EXAMPLES: [LandingExample; 3] = [
    LandingExample {
        name: "page",
        light: PAGE_PICTURES.0,
        dark: PAGE_PICTURES.1,
        alt: "A page with headings, a table, a diagram and a list of tasks.",
        title: "A page",
        about: "Markdown with tables, diagrams, formulas and code, or your own HTML. It is rendered when you publish it, so that it is there at once: on a phone, in the dark and on paper.",
        guide: "share",
        guide_title: "Share a page",
    },
    LandingExample {
        name: "app",
        light: APP_PICTURES.0,
        dark: APP_PICTURES.1,
        alt: "A poll with two buttons, and bars that show the votes.",
        title: "A live app",
        about: "One HTML file, with an SQLite database behind it. What one visitor does, all others see at once; and they can sign in, talk and pay.",
        guide: "live",
        guide_title: "Make a live page",
    },
    LandingExample {
        name: "project",
        light: PROJECT_PICTURES.0,
        dark: PROJECT_PICTURES.1,
        alt: "A price list on an address of its own: searched, filtered, and sorted by price.",
        title: "A project",
        about: "Pages that last, on an address of their own, with drafts, previews and rollback. Tables are searched, filtered and sorted.",
        guide: "apps",
        guide_title: "Own a project",
    },
];

/// Makes the section of examples; `api` is the base URL of the guides.
pub(super) fn gallery(api: &str) -> Markup {
    html! {
        section aria-labelledby="makes" {
            h2 #makes { "What you can make" }
            ul.makes {
                @for example in &EXAMPLES {
                    li {
                        picture {
                            source media="(prefers-color-scheme: dark)" srcset=(picture_path(&picture_file_name(example, true)));
                            img src=(picture_path(&picture_file_name(example, false))) width=(PICTURE_SIZE.0) height=(PICTURE_SIZE.1) loading="lazy" decoding="async" alt=(example.alt);
                        }
                        h3 { (example.title) }
                        p { (example.about) }
                        a href={ (api) "/_svc/docs/" (example.guide) } { (example.guide_title) }
                    }
                }
            }
            p.safe {
                "A link is public to everybody who has it, unless you give the page a password. What strangers publish runs in an origin of its own, without cookies and without storage."
            }
        }
    }
}

/// Returns all pictures as documents, by their file names.
///
/// # Errors
/// Only when a compressor fails.
pub(super) fn picture_documents() -> io::Result<Vec<(String, EncodedDocument)>> {
    let headers = headers(HeaderValue::from_static("image/webp"), CACHE_ONE_DAY, None);
    let pictures = EXAMPLES.iter().flat_map(|example| {
        [
            (picture_file_name(example, false), example.light),
            (picture_file_name(example, true), example.dark),
        ]
    });
    pictures
        .map(|(file, bytes)| {
            Ok((
                file,
                EncodedDocument::new(Bytes::from_static(bytes), &headers)?,
            ))
        })
        .collect()
}

fn picture_file_name(example: &LandingExample, is_dark: bool) -> String {
    let scheme = if is_dark { "-dark" } else { "" };
    format!("{}{scheme}.webp", example.name)
}

fn picture_path(file: &str) -> String {
    format!("/_svc/pictures/{file}")
}
