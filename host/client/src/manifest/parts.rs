//! Parts of a project as they are compared: by digests and names, without the texts themselves.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::pages::LocalPage;
use super::prices::{Interval, PriceEntry};
use super::remote_state::{RemoteAction, RemoteFrontend, RemotePrice};
use crate::actions::ActionFile;
use crate::file_rules::{self, FileRules};
use svc_base::digest::Digest;

/// Text of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PageText {
    pub(super) sha256: String,
    /// `None` for a page of the folder that has no title of its own there.
    pub(super) title: Option<String>,
}

/// Text of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ActionText {
    pub(super) checksum: String,
    #[serde(default)]
    pub(super) defaults: Map<String, Value>,
    /// Rules for visitors' files, without what goes without saying.
    #[serde(default)]
    pub(super) files: FileRules,
}

/// Terms of a price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PriceTerms {
    pub(super) product: String,
    pub(super) label: String,
    pub(super) amount: u64,
    pub(super) currency: String,
    /// How often it is paid; once, if none.
    pub(super) interval: Option<Interval>,
    /// `None` for a price of the folder that does not describe its product.
    pub(super) description: Option<String>,
}

impl PageText {
    /// Text of a page in the folder.
    pub(super) fn of_folder(page: &LocalPage) -> Self {
        Self {
            sha256: page.sha256(),
            title: page.title.clone(),
        }
    }

    /// Text of a page on the server. Its title counts only where the folder gives one, too.
    pub(super) fn of_server(frontend: &RemoteFrontend) -> Self {
        Self {
            sha256: frontend.content_sha256.clone().unwrap_or_default(),
            title: Some(frontend.title.clone()),
        }
    }
}

impl ActionText {
    /// Text of an action in the folder.
    pub(super) fn of_folder(action: &ActionFile) -> Self {
        Self {
            checksum: Digest::of(action.sql.as_bytes()).to_string(),
            defaults: action.defaults.clone(),
            files: file_rules::plain(&action.files),
        }
    }

    /// Text of an action on the server.
    pub(super) fn of_server(action: &RemoteAction) -> Self {
        Self {
            checksum: action.checksum.clone(),
            defaults: action.defaults.clone(),
            files: file_rules::plain(&action.files()),
        }
    }
}

impl PriceTerms {
    /// Terms of a price in the folder.
    pub(super) fn of_folder(price: &PriceEntry) -> Self {
        Self {
            product: price.product.clone(),
            label: price.label.clone(),
            amount: price.amount,
            currency: price.currency.to_ascii_lowercase(),
            interval: price.interval(),
            description: price.description.clone().filter(|text| !text.is_empty()),
        }
    }

    /// Terms of a price on the server.
    pub(super) fn of_server(price: &RemotePrice) -> Self {
        Self {
            product: price.product.clone(),
            label: price.label.clone(),
            amount: price.amount,
            currency: price.currency.clone(),
            interval: price.interval,
            description: price.description.clone(),
        }
    }
}

/// A part that may leave something open, which is then the server's to say.
pub(super) trait Comparable: Clone + PartialEq {
    /// Returns the part of the server or of the last meeting as it is compared with the folder's: without what the folder leaves open.
    fn beside(&self, local: Option<&Self>) -> Self;
}

impl Comparable for PageText {
    fn beside(&self, local: Option<&Self>) -> Self {
        let mut text = self.clone();
        if local.is_some_and(|local| local.title.is_none()) {
            text.title = None;
        }
        text
    }
}

impl Comparable for ActionText {
    fn beside(&self, _: Option<&Self>) -> Self {
        self.clone()
    }
}

impl Comparable for PriceTerms {
    fn beside(&self, local: Option<&Self>) -> Self {
        let mut terms = self.clone();
        if local.is_some_and(|local| local.description.is_none()) {
            terms.description = None;
        }
        terms
    }
}

impl Comparable for String {
    fn beside(&self, _: Option<&Self>) -> Self {
        self.clone()
    }
}
