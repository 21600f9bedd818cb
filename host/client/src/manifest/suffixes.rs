//! Pages whose slugs were taken, and which have a suffix on the server. A page of somebody else may have such a slug, too.

use std::collections::BTreeMap;

use super::Manifest;
use super::authorship::page_history;
use super::meetings::Meetings;
use super::remote_state::RemoteProjectState;
use crate::api::ApiClient;
use crate::error::{CliFailure, FailureExitCode, Result};
use svc_base::names::{RANDOM_SUFFIX_LENGTH, append_suffix_within_limit, numbered_slugs};
use svc_base::random::is_random_slug;

/// Title of the failure of a page that may be one of the server or not.
const WHICH_PAGE: &str = "Which page?";

/// Frontends whose slugs are pages' with a suffix, and which are others' pages: by the slugs of the pages.
#[derive(Clone, Debug, Default)]
pub(super) struct PagesApart(BTreeMap<String, Vec<String>>);

impl PagesApart {
    /// Whether a frontend is another page than the wanted one.
    pub(super) fn has(&self, wanted: &str, slug: &str) -> bool {
        let found = self.0.get(wanted);
        found.is_some_and(|slugs| slugs.iter().any(|one| one == slug))
    }

    /// Lists the slugs that a page could have had; none for a page that is known by another slug.
    pub(super) fn of(&self, wanted: &str) -> &[String] {
        self.0.get(wanted).map_or(&[], Vec::as_slice)
    }

    /// Lists the pages, each with the slugs that it could have had.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.0
            .iter()
            .map(|(wanted, slugs)| (wanted.as_str(), slugs.as_slice()))
    }
}

impl RemoteProjectState {
    /// Sets the frontends apart that only look like the pages of a manifest. A frontend with a suffix is a page's if they have met, or
    /// if it has had the page's text. `digest_of` returns the digest of the folder's text.
    ///
    /// # Errors
    /// Failures of the server and of reading.
    pub(super) async fn set_apart(
        &mut self,
        api: &ApiClient,
        manifest: &Manifest,
        meetings: &Meetings,
        digest_of: impl Fn(&str) -> Result<Option<String>>,
    ) -> Result<()> {
        for wanted in manifest.pages.keys() {
            let candidates = self.suffixed(wanted, manifest);
            let met = meetings.pages.get(wanted);
            if candidates.is_empty() {
                continue;
            }
            let mut known: Vec<String> = met
                .into_iter()
                .flat_map(|met| met.digests().map(str::to_owned))
                .collect();
            known.extend(digest_of(wanted)?);
            let mut apart = Vec::new();
            for (slug, live) in candidates {
                let is_page = match met.and_then(|met| met.slug.as_ref()) {
                    Some(met) => *met == slug,
                    None if live.is_some_and(|live| known.contains(&live)) => true,
                    None => {
                        let had = page_history(api, &self.project.id, &slug).await?;
                        had.iter().any(|text| known.contains(&text.sha256))
                    }
                };
                if !is_page {
                    apart.push(slug);
                }
            }
            if !apart.is_empty() {
                self.apart.0.insert(wanted.clone(), apart);
            }
        }
        Ok(())
    }

    /// Lists the frontends whose slugs are a page's with a suffix, with the digests of their texts; none where one has the very slug.
    fn suffixed(&self, wanted: &str, manifest: &Manifest) -> Vec<(String, Option<String>)> {
        if self.frontends.iter().any(|one| one.slug == wanted) {
            return Vec::new();
        }
        let suffixed = self.frontends.iter().filter(|one| {
            is_suffixed(&one.slug, wanted) && !manifest.pages.contains_key(&one.slug)
        });
        suffixed
            .map(|one| (one.slug.clone(), one.content_sha256.clone()))
            .collect()
    }
}

/// Failure of a page that several frontends may be.
pub(super) fn several_pages(wanted: &str, slugs: &[&str]) -> CliFailure {
    CliFailure::new(
        FailureExitCode::Conflict,
        WHICH_PAGE,
        format!(
            "The page `{wanted}` may be {}: name it in svc.toml by the slug that it has.",
            alternatives(slugs)
        ),
    )
}

/// Failure of a page that would be taken for one that never had its text.
pub(super) fn unknown_page(wanted: &str, slugs: &[String]) -> CliFailure {
    let slugs: Vec<_> = slugs.iter().map(String::as_str).collect();
    CliFailure::new(
        FailureExitCode::Conflict,
        WHICH_PAGE,
        format!(
            "The page `{wanted}` may be {}, which never had the folder's text. If it is, name it in svc.toml by the slug that it has. If it is another page, `svc pull` brings that one, and `{wanted}` is a page of its own then.",
            alternatives(&slugs)
        ),
    )
}

fn alternatives(slugs: &[&str]) -> String {
    let slugs: Vec<_> = slugs.iter().map(|slug| format!("`{slug}`")).collect();
    slugs.join(" or ")
}

/// Whether a slug is `wanted` with a suffix of the server: a number that it gives, or a random word.
pub(super) fn is_suffixed(slug: &str, wanted: &str) -> bool {
    if numbered_slugs(wanted).any(|numbered| numbered == slug) {
        return true;
    }
    let Some((_, suffix)) = slug.rsplit_once('-') else {
        return false;
    };
    suffix.len() == RANDOM_SUFFIX_LENGTH
        && is_random_slug(suffix)
        && append_suffix_within_limit(wanted, suffix) == slug
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_servers_suffixes_count() {
        for (slug, is) in [
            ("book-2", true),
            ("book-9", true),
            ("book-1", false),
            ("book-12", false),
            ("book-31", false),
            ("book-20261123", false),
            ("book-rhythm", false),
            ("book-nnnnnnn", false),
            ("book-2k8bcd", true),
            ("book", false),
            ("book-", false),
            ("book-shop", false),
            ("book-orders", false),
            ("book-2-b", false),
            ("books-2", false),
        ] {
            assert_eq!(is_suffixed(slug, "book"), is, "{slug}");
        }
        let long = "b".repeat(63);
        assert!(is_suffixed(&append_suffix_within_limit(&long, "2"), &long));
    }
}
