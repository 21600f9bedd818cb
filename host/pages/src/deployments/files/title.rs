//! Title of a site: that of its start page, unless the publication gives one.

use bytes::Bytes;
use futures_util::TryStreamExt as _;

use super::model::{FileError, NewSite, NewSiteFile, SiteTitle};
use super::service::ProjectFiles;
use crate::content::OBJECT_BYTES;
use crate::deployments::publication::{PageSource, PublishError};
use crate::deployments::sites::{FileReader, SiteManifest};
use svc_sandbox::ContentType;

/// Document whose title is that of the site.
const START_PAGE: &str = "index.html";

impl NewSite {
    /// Returns the file whose title is that of the site.
    pub(super) fn start_page(&self) -> Option<NewSiteFile> {
        self.files.get(START_PAGE).cloned()
    }
}

impl ProjectFiles {
    /// Finds the title of a site.
    ///
    /// # Errors
    /// `Capacity` if no guest can read it now.
    pub(super) async fn find_title(
        &self,
        title: SiteTitle,
        start_page: Option<NewSiteFile>,
        manifest: &SiteManifest,
    ) -> Result<String, FileError> {
        match title {
            SiteTitle::Given(title) => Ok(title),
            SiteTitle::OfStartPage(other) => {
                let own = self.page_title(start_page, manifest).await?;
                Ok(own.unwrap_or(other))
            }
        }
    }

    /// Has a guest read the title of a start page; a page that it cannot render has none.
    async fn page_title(
        &self,
        page: Option<NewSiteFile>,
        manifest: &SiteManifest,
    ) -> Result<Option<String>, FileError> {
        let bytes = match page {
            None => return Ok(None),
            Some(NewSiteFile::Inline(bytes)) => Some(bytes),
            Some(_) => self.beginning(manifest, START_PAGE).await?,
        };
        let Some(text) = bytes.as_deref().and_then(whole_characters) else {
            return Ok(None);
        };
        let source = PageSource::titled(ContentType::Html, "", text);
        match self.pipeline.render_unstored(source).await {
            Ok(page) => Ok(Some(page.title).filter(|title| !title.is_empty())),
            Err(error @ (PublishError::Abandoned(_) | PublishError::Capacity(_))) => {
                Err(error.into())
            }
            Err(_) => Ok(None),
        }
    }

    /// Returns the first bytes of a file of a site: as many as an object has.
    async fn beginning(
        &self,
        manifest: &SiteManifest,
        path: &str,
    ) -> Result<Option<Bytes>, FileError> {
        let Some(file) = manifest.files.get(path) else {
            return Ok(None);
        };
        if file.list.is_none() {
            return Ok(self.content.get(&file.digest).await?);
        }
        let reader = FileReader::open(&self.content, *file).await?;
        let parts = reader.read(0..file.bytes.min(OBJECT_BYTES as u64));
        let parts: Vec<Bytes> = parts.try_collect().await?;
        Ok(Some(parts.concat().into()))
    }
}

/// Returns bytes as a text, without a last character that is cut off; `None` if they are none.
fn whole_characters(bytes: &[u8]) -> Option<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => {
            let whole = bytes.get(..error.valid_up_to())?;
            std::str::from_utf8(whole).ok()
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_with_a_whole_character() {
        let text = "<title>ü</title>ü".as_bytes();
        assert_eq!(whole_characters(text), Some("<title>ü</title>ü"));
        let cut = &text[..text.len() - 1];
        assert_eq!(whole_characters(cut), Some("<title>ü</title>"));
        assert_eq!(whole_characters(b"a\xffb"), None);
    }
}
