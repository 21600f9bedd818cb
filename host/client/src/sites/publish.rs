//! Publishing of a site into a project. Only what the project does not have is sent: small files within the request, others before it.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Map, Value, json};

use super::content::{RemoteSite, SiteDifference};
use super::folder::{LocalFile, SiteFolder};
use super::{SITE_TYPE, SiteOptions};
use crate::api::ApiClient;
use crate::endpoints::{self, Endpoint};
use crate::error::{CliFailure, Result};
use crate::output::escape_line;
use crate::progress::TerminalProgressBar;
use svc_base::digest::Digest;

/// Most bytes of the files within a request, far below the server's limit of its body.
pub(super) const INLINE_BYTES: u64 = 1_500_000;
/// Most bytes of a file within a request, where not all fit.
const INLINE_FILE_BYTES: u64 = 16 << 10;
/// Files that are sent at once.
const UPLOADS_AT_ONCE: usize = 8;
/// Files above this are sent one after the other, so that few are in memory.
const LARGE_BYTES: u64 = 8 << 20;
/// Most times that a request is sent, while files are missing that were there before.
pub(crate) const MAX_ROUNDS: u32 = 5;

/// Publisher of a site into a project.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SitePublisher<'a> {
    pub(crate) api: &'a ApiClient,
    /// Id of the project.
    pub(crate) project: &'a str,
    pub(crate) site: &'a SiteFolder,
}

/// A new site.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewSite<'a> {
    pub(crate) slug: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) options: Option<&'a SiteOptions>,
}

/// A draft on top of a revision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SiteChange<'a> {
    /// Slug of the site.
    pub(crate) slug: &'a str,
    /// Id of the revision.
    pub(crate) base: &'a str,
    /// Files of the revision.
    pub(crate) remote: &'a RemoteSite,
    /// New options; as they are, if there are none.
    pub(crate) options: Option<&'a SiteOptions>,
    pub(crate) title: Option<&'a str>,
    pub(crate) message: Option<&'a str>,
}

/// Files of a request, by their paths.
type Entries = Map<String, Value>;

impl SitePublisher<'_> {
    /// Makes a site; returns the frontend.
    ///
    /// # Errors
    /// Failures of the server, and of reading the files.
    pub(crate) async fn create(&self, new: NewSite<'_>) -> Result<Value> {
        let paths: Vec<_> = self.site.files.keys().map(String::as_str).collect();
        let body = |files: Entries| {
            json!({
                "type": SITE_TYPE, "files": files, "options": new.options, "requested_slug": new.slug, "title": new.title,
            })
        };
        let to = (&endpoints::CREATE_FRONTEND, &[self.project][..]);
        self.send(to, &paths, &BTreeSet::new(), body).await
    }

    /// Makes a draft of the folder on top of a revision; returns the server's answer.
    ///
    /// # Errors
    /// As of [`Self::create`].
    pub(crate) async fn draft(&self, change: SiteChange<'_>) -> Result<Value> {
        let difference = SiteDifference::of_folder(change.remote, self.site, change.options);
        let new: Vec<_> = difference.new_paths().collect();
        let are_changes = difference.is_small();
        let paths = match are_changes {
            true => new,
            false => self.site.files.keys().map(String::as_str).collect(),
        };
        let body = |files: Entries| {
            let (files, changes) = match are_changes {
                true => (None, Some(json!({ "set": files }))),
                false => (Some(files), None),
            };
            json!({
                "base_revision_id": change.base, "files": files, "changes": changes, "options": change.options,
                "title": change.title, "message": change.message,
            })
        };
        let to = (
            &endpoints::CREATE_REVISION,
            &[self.project, change.slug][..],
        );
        self.send(to, &paths, &change.remote.digests(), body).await
    }

    /// Sends a request with files, and before it what the server says that the project does not have. Counts and sizes are judged before
    /// a file is sent.
    async fn send(
        &self,
        (call, at): (&'static Endpoint, &[&str]),
        paths: &[&str],
        known: &BTreeSet<Digest>,
        body: impl Fn(Entries) -> Value,
    ) -> Result<Value> {
        let mut inline = self.inline_all(paths, known);
        let mut may_inline = true;
        let mut round = 0;
        loop {
            let entries = self.entries(paths, &inline)?;
            let asked = self.api.call(call, at).body(body(entries));
            let failure = match asked.send().await {
                Ok(made) => return Ok(made),
                Err(failure) => failure,
            };
            round += 1;
            let is_last = round == MAX_ROUNDS;
            match failure.code() {
                "files_missing" if !is_last => {
                    let missing = missing_digests(&failure);
                    inline = self.provide(&missing, may_inline).await?;
                }
                "payload_too_large" if !is_last && !inline.is_empty() => {
                    (inline, may_inline) = (BTreeSet::new(), false);
                }
                _ => return Err(self.site.explain(failure)),
            }
        }
    }

    /// Returns the digests of what the project may not have, if all of that fits into the request.
    fn inline_all(&self, paths: &[&str], known: &BTreeSet<Digest>) -> BTreeSet<Digest> {
        let new = paths.iter().filter_map(|path| self.site.files.get(*path));
        let new: Vec<_> = new.filter(|file| !known.contains(&file.digest)).collect();
        match new.iter().map(|file| file.bytes).sum::<u64>() <= INLINE_BYTES {
            true => new.iter().map(|file| file.digest).collect(),
            false => BTreeSet::new(),
        }
    }

    /// Makes the entries of a request: the bytes of what is sent within it, the digests of the rest.
    fn entries(&self, paths: &[&str], inline: &BTreeSet<Digest>) -> Result<Entries> {
        let mut entries = Entries::new();
        for path in paths {
            let Some(file) = self.site.files.get(*path) else {
                continue;
            };
            let entry = match inline.contains(&file.digest) {
                true => inline_entry(self.site.read_file(path)?),
                false => named_entry(file),
            };
            entries.insert((*path).to_owned(), entry);
        }
        Ok(entries)
    }

    /// Sends the files that a project does not have, but for small ones; returns the digests of those, which go with the request.
    pub(super) async fn provide(
        &self,
        missing: &BTreeSet<Digest>,
        may_inline: bool,
    ) -> Result<BTreeSet<Digest>> {
        let mut seen = BTreeSet::new();
        let files = self.site.files.iter();
        let mut files: Vec<_> = files
            .filter(|(_, file)| missing.contains(&file.digest) && seen.insert(file.digest))
            .collect();
        files.sort_by_key(|(_, file)| file.bytes);
        let mut room = INLINE_BYTES;
        let mut inline = BTreeSet::new();
        files.retain(|(_, file)| {
            let fits = may_inline && file.bytes <= INLINE_FILE_BYTES.min(room);
            if fits {
                room -= file.bytes;
                inline.insert(file.digest);
            }
            !fits
        });
        // The largest come first: if one is refused, little was sent.
        files.reverse();
        self.upload(
            files
                .into_iter()
                .map(|(path, file)| (path.as_str(), file.bytes)),
        )
        .await?;
        Ok(inline)
    }

    /// Sends files ahead of a request that names them.
    async fn upload<'p>(&self, files: impl Iterator<Item = (&'p str, u64)>) -> Result<()> {
        let files: Vec<_> = files.collect();
        if files.is_empty() {
            return Ok(());
        }
        let api = self.api.for_uploads()?;
        let bytes = files.iter().map(|(_, bytes)| bytes).sum();
        let bar = TerminalProgressBar::bytes("uploading", Some(bytes));
        let (large, small): (Vec<_>, Vec<_>) = files
            .into_iter()
            .partition(|(_, bytes)| *bytes > LARGE_BYTES);
        for (path, _) in large {
            self.put(&api, path, &bar).await?;
        }
        let sent = stream::iter(small).map(|(path, _)| self.put(&api, path, &bar));
        let mut sent = sent.buffer_unordered(UPLOADS_AT_ONCE);
        while sent.try_next().await?.is_some() {}
        Ok(())
    }

    async fn put(&self, api: &ApiClient, path: &str, bar: &TerminalProgressBar) -> Result<()> {
        let bytes = self.site.read_file(path)?;
        let (digest, length) = (Digest::of(&bytes).to_string(), bytes.len());
        let asked = api.call(&endpoints::PUT_BLOB, &[self.project, &digest]);
        let sent = asked.raw(Bytes::from(bytes)).send().await;
        sent.map_err(|failure| failure.with_file(&self.site.path.join(path)))?;
        bar.add(length);
        Ok(())
    }
}

impl SiteFolder {
    /// Adds the file to a refusal that is about one, and the paths to one that names several.
    pub(crate) fn explain(&self, failure: CliFailure) -> CliFailure {
        let text = |name: &str| {
            let member = failure.member(name).and_then(Value::as_str);
            member.map(str::to_owned)
        };
        let file = match failure.code() {
            "path_refused" => text("path"),
            "rules_refused" => text("file"),
            _ => None,
        };
        let line = failure.member("line").and_then(Value::as_u64);
        let paths = failure.member("paths").and_then(Value::as_array).cloned();
        let failure = match (file, line) {
            (Some(file), Some(line)) => failure.with_file(&self.path.join(file)).with_line(line),
            (Some(file), None) => failure.with_file(&self.path.join(file)),
            (None, _) => failure,
        };
        match paths {
            Some(paths) => {
                let lines = paths.iter().filter_map(Value::as_str).map(escape_line);
                let lines = lines.collect();
                failure.with_list("paths", paths, lines)
            }
            None => failure,
        }
    }
}

/// Digests that a server misses.
pub(super) fn missing_digests(failure: &CliFailure) -> BTreeSet<Digest> {
    let missing = failure.member("missing").and_then(Value::as_array);
    let missing = missing.into_iter().flatten().filter_map(Value::as_str);
    missing.filter_map(Digest::from_hex).collect()
}

/// File that the project has, by its digest.
pub(super) fn named_entry(file: &LocalFile) -> Value {
    json!({ "sha256": file.digest.to_string(), "size": file.bytes })
}

/// Bytes of a file within a request: as a text where that is shorter.
pub(super) fn inline_entry(bytes: Vec<u8>) -> Value {
    let encoded = |bytes: &[u8]| json!({ "base64": STANDARD.encode(bytes) });
    match String::from_utf8(bytes) {
        Ok(text) => {
            let escaped = Value::from(text.as_str()).to_string().len();
            let quoted_base64 = text.len().div_ceil(3) * 4 + 2;
            match escaped <= quoted_base64 {
                true => json!({ "text": text }),
                false => encoded(text.as_bytes()),
            }
        }
        Err(error) => encoded(error.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_in_their_shorter_form() {
        assert_eq!(inline_entry(b"a\n".to_vec()), json!({ "text": "a\n" }));
        assert_eq!(inline_entry(Vec::new()), json!({ "text": "" }));
        assert_eq!(
            inline_entry(b"\xff\xfe".to_vec()),
            json!({ "base64": "//4=" })
        );
        let controls = vec![1; 300];
        assert!(inline_entry(controls)["base64"].is_string());
    }
}
