//! Folders of `svc push` and `svc watch`: what has changed is sent, and becomes live at once as a whole.

use std::path::Path;

use serde_json::json;

use super::{PushCommand, WatchCommand, check_ours, explain_missing_frontend};
use crate::error::Result;
use crate::frontends::FrontendHandle;
use crate::output::member_text;
use crate::publish::print_warnings;
use crate::revisions::{ReleaseOptions, release_note};
use crate::sites::{
    LiveSite, NewSite, SiteChange, SiteDifference, SiteFolder, SitePublisher, is_media, media_site,
    publishing_hints, remember_published,
};
use crate::{OutputFormat, endpoints};

/// Reads a folder, or a file that is published as a site of its own.
fn read_site(path: &Path) -> Result<SiteFolder> {
    match is_media(path) {
        true => media_site(path),
        false => SiteFolder::read(path),
    }
}

impl PushCommand {
    /// Makes a folder the live files of a site.
    pub(super) async fn push_site(&self, mut found: FrontendHandle) -> Result<()> {
        let out = self.common.output();
        let site = read_site(&self.file)?;
        let options = self.site_options.options();
        if let Some(options) = &options {
            site.check_options(options)?;
        }
        site.notes.iter().for_each(|note| out.print_note(note));
        found.api = found.api.with_retries();
        let live = LiveSite::read(&found)
            .await
            .map_err(|failure| explain_missing_frontend(failure, &found))?;
        let difference = SiteDifference::of_folder(&live.remote, &site, options.as_ref());
        if difference.is_empty() && self.title.is_none() {
            live.remember();
            let document = json!({ "changed": false, "revision_id": live.base });
            let text = format!(
                "nothing has changed: {} is what is live",
                site.path.display()
            );
            return out.print_answer(&document, &text);
        }
        if !self.draft && !self.force {
            live.check_seen(&found.slug)?;
        }
        out.print_note(&difference.to_text());
        let change = SiteChange {
            slug: &found.slug,
            base: &live.base,
            remote: &live.remote,
            options: options.as_ref(),
            title: self.title.as_deref(),
            message: self.message.as_deref(),
        };
        let draft = publisher(&found, &site).draft(change).await?;
        print_warnings(out, &draft);
        let mut document = json!({
            "changed": true, "live": !self.draft, "url": draft["preview_url"], "revision": draft["revision"],
            "preview_url": draft["preview_url"], "files": difference.to_json(),
        });
        if self.draft {
            out.print_note(&format!(
                "The draft is {}. What is live has not changed.",
                member_text(&draft["revision"], "revision_id")
            ));
            return out.print_answer(&document, &member_text(&draft, "preview_url"));
        }
        let done = found.promote(&live.base, &draft, self.release()).await?;
        let digest = member_text(&draft["revision"], "content_sha256");
        live.remember_folder(&site, options.as_ref(), &digest);
        out.print_note(&release_note(&done));
        print_warnings(out, &done["frontend"]);
        let url = member_text(&done["frontend"], "url");
        print_hints(out, (&site, &found.slug, &url));
        document["url"] = url.as_str().into();
        out.print_answer(&document, &url)
    }
}

impl WatchCommand {
    /// Publishes the folder for the first time, and reports its URL; returns the live revision.
    pub(super) async fn publish_site_first(&self, found: &mut FrontendHandle) -> Result<String> {
        let out = self.common.output();
        let there = found
            .api
            .call(&endpoints::FRONTEND, &found.path_parts())
            .send()
            .await;
        let (page, revision) = match there {
            Ok(page) => {
                let revision = self.publish_site_change(found, None).await?;
                (page, Some(revision))
            }
            Err(failure) if failure.is_not_found() => {
                let site = read_site(&self.file)?;
                let options = self.site_options.options();
                let new = NewSite {
                    slug: Some(&found.slug),
                    title: None,
                    options: options.as_ref(),
                };
                let page = publisher(found, &site).create(new).await?;
                let files = (&site, options.as_ref());
                remember_published(&found.api, &found.project.id, files, &page);
                site.notes.iter().for_each(|note| out.print_note(note));
                print_warnings(out, &page);
                let (slug, url) = (member_text(&page, "slug"), member_text(&page, "url"));
                print_hints(out, (&site, &slug, &url));
                (page, None)
            }
            Err(failure) => return Err(failure),
        };
        // If the slug was taken, the server chose another.
        found.slug = member_text(&page, "slug");
        let document = json!({ "url": page["url"], "slug": page["slug"] });
        out.print_answer(&document, &member_text(&page, "url"))?;
        match revision {
            Some(revision) => Ok(revision),
            None => found.active_revision().await,
        }
    }

    /// Publishes the folder if it differs from the live files, which must be `ours`; returns the live revision.
    pub(super) async fn publish_site_change(
        &self,
        found: &FrontendHandle,
        ours: Option<&str>,
    ) -> Result<String> {
        let live = LiveSite::read(found).await?;
        check_ours(found, ours, &live.base)?;
        let site = read_site(&self.file)?;
        let options = self.site_options.options();
        if let Some(options) = &options {
            site.check_options(options)?;
        }
        let difference = SiteDifference::of_folder(&live.remote, &site, options.as_ref());
        if difference.is_empty() {
            live.remember();
            return Ok(live.base);
        }
        if ours.is_none() {
            live.check_seen(&found.slug)?;
        }
        let change = SiteChange {
            slug: &found.slug,
            base: &live.base,
            remote: &live.remote,
            options: options.as_ref(),
            title: None,
            message: None,
        };
        let draft = publisher(found, &site).draft(change).await?;
        let done = found
            .promote(&live.base, &draft, ReleaseOptions::default())
            .await?;
        let digest = member_text(&draft["revision"], "content_sha256");
        live.remember_folder(&site, options.as_ref(), &digest);
        let out = self.common.output();
        print_warnings(out, &done["frontend"]);
        out.print_note(&format!(
            "published {} ({})",
            site.path.display(),
            difference.size()
        ));
        Ok(member_text(&draft["revision"], "revision_id"))
    }
}

fn publisher<'a>(found: &'a FrontendHandle, site: &'a SiteFolder) -> SitePublisher<'a> {
    SitePublisher {
        api: &found.api,
        project: &found.project.id,
        site,
    }
}

/// Prints hints about a site that has a slug and answers at a URL.
fn print_hints(out: OutputFormat, (site, slug, url): (&SiteFolder, &str, &str)) {
    for hint in publishing_hints(site, slug, url, false) {
        out.print_note(&hint);
    }
}
