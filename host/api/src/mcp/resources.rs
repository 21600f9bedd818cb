//! Resources of the tool endpoint: texts that an agent may read, of which the guide for agents is the first.

use std::sync::{Arc, LazyLock, OnceLock};

use rmcp::ErrorData;
use rmcp::model::{ListResourcesResult, ReadResourceResult, Resource, ResourceContents};

/// A text that agents may read.
#[derive(Clone, Debug)]
pub struct ResourceText {
    /// Address, at which HTTP answers the same text.
    pub uri: String,
    pub name: &'static str,
    /// Sentence that says what it is about.
    pub about: String,
    pub media_type: &'static str,
    pub text: String,
}

type MadeTexts = LazyLock<Vec<ResourceText>, Box<dyn FnOnce() -> Vec<ResourceText> + Send>>;

/// The texts, which the routes hand in when they are made, and which are written at the first request for one.
#[derive(Clone, Debug, Default)]
pub struct ResourceTexts(Arc<OnceLock<MadeTexts>>);

impl ResourceTexts {
    /// Takes the texts that `make` writes. Later ones are left alone.
    pub fn hand_in(&self, make: impl FnOnce() -> Vec<ResourceText> + Send + 'static) {
        self.0.get_or_init(|| LazyLock::new(Box::new(make)));
    }

    fn texts(&self) -> &[ResourceText] {
        self.0.get().map(|made| made.as_slice()).unwrap_or_default()
    }

    /// Lists all texts.
    pub(super) fn list(&self) -> ListResourcesResult {
        let resources = self.texts().iter().map(|one| {
            let size = u64::try_from(one.text.len()).unwrap_or(u64::MAX);
            Resource::new(one.uri.clone(), one.name)
                .with_description(one.about.clone())
                .with_mime_type(one.media_type)
                .with_size(size)
        });
        ListResourcesResult::with_all_items(resources.collect())
    }

    /// Returns a text.
    ///
    /// # Errors
    /// That there is no such resource.
    pub(super) fn read(&self, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        let found = self.texts().iter().find(|one| one.uri == uri);
        let found = found.ok_or_else(|| {
            let message = "There is no such resource: `resources/list` names those that there are.";
            ErrorData::resource_not_found(message, None)
        })?;
        let contents = ResourceContents::text(found.text.clone(), found.uri.clone());
        let contents = contents.with_mime_type(found.media_type);
        Ok(ReadResourceResult::new(vec![contents]))
    }
}
