//! The documents of the description: the whole, and one for each tag. Each is made and compressed at its first request.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use crate::config::Limits;
use crate::http::document::{EncodedDocument, REVALIDATE};
use crate::http::extract::invalid_request;
use crate::http::problem::Problem;

const JSON_TYPE: HeaderValue = HeaderValue::from_static("application/json");
/// Prefix of references to components.
const COMPONENTS_PREFIX: &str = "#/components/";

/// Which part of the description.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DescriptionQuery {
    /// A tag: only its operations, with the components that they use. All of them, if absent.
    pub tag: Option<String>,
}

/// Makes the text of the whole description, once.
type MakeTextFn = Box<dyn FnOnce() -> Bytes + Send>;

/// The description with its documents. It is kept as text: as a tree it takes 17 MB.
pub struct ApiDescription {
    text: Arc<LazyLock<Bytes, MakeTextFn>>,
    /// Names of the tags, in their order.
    tags: Vec<String>,
    whole: OnceCell<EncodedDocument>,
    parts: BTreeMap<String, OnceCell<EncodedDocument>>,
}

impl fmt::Debug for ApiDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiDescription")
            .field("tags", &self.tags)
            .finish_non_exhaustive()
    }
}

impl ApiDescription {
    /// Takes what makes the complete description, at the first request for any of it, and fills in its placeholders then.
    pub(super) fn new(
        tags: Vec<String>,
        limits: Limits,
        make: impl FnOnce() -> Value + Send + 'static,
    ) -> Self {
        let make = move || limits.fill_in(&make().to_string()).into();
        Self {
            text: Arc::new(LazyLock::new(Box::new(make))),
            parts: tags
                .iter()
                .cloned()
                .map(|tag| (tag, OnceCell::new()))
                .collect(),
            tags,
            whole: OnceCell::new(),
        }
    }

    /// Returns the whole description as JSON. It is read anew each time.
    pub fn value(&self) -> Value {
        parse(&self.text)
    }

    /// Returns the document of the whole description, or of a tag.
    ///
    /// # Errors
    /// `invalid_request` for an unknown tag, naming the known ones.
    pub(super) async fn document(&self, tag: Option<&str>) -> Result<&EncodedDocument, Problem> {
        let cell = match tag {
            None => &self.whole,
            Some(tag) => self.parts.get(tag).ok_or_else(|| self.unknown(tag))?,
        };
        let make = async || {
            let (text, tag) = (Arc::clone(&self.text), tag.map(str::to_owned));
            // Making and compressing it takes a while.
            let made = tokio::task::spawn_blocking(move || match tag {
                None => to_document((*text).clone()),
                Some(tag) => {
                    let part = filter_by_tag(&parse(&text), &tag);
                    to_document(part.to_string().into())
                }
            });
            let made = made.await.map_err(|error| Problem::internal(&error))?;
            made.map_err(|error| Problem::internal(&error))
        };
        cell.get_or_try_init(make).await
    }

    fn unknown(&self, tag: &str) -> Problem {
        let known: Vec<String> = self.tags.iter().map(|tag| format!("`{tag}`")).collect();
        invalid_request(format!(
            "`tag`: there is no `{}`. Send one of {}, or leave it out.",
            tag.escape_default(),
            known.join(", ")
        ))
    }
}

/// Reads a text that was written here.
fn parse(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_default()
}

fn to_document(text: Bytes) -> std::io::Result<EncodedDocument> {
    let headers = HeaderMap::from_iter([
        (header::CONTENT_TYPE, JSON_TYPE),
        (header::CACHE_CONTROL, REVALIDATE),
    ]);
    EncodedDocument::new(text, &headers)
}

/// Filters the description by a tag: its operations, the links between them, and the components that they use.
fn filter_by_tag(whole: &Value, tag: &str) -> Value {
    let mut part = whole.clone();
    let mut kept = BTreeSet::new();
    retain_members(&mut part["paths"], |_, item| {
        retain_members(item, |_, operation| {
            let tagged = operation["tags"].as_array().into_iter().flatten();
            let stays = tagged.into_iter().any(|own| own == tag);
            if let Some(id) = operation["operationId"].as_str().filter(|_| stays) {
                kept.insert(id.to_owned());
            }
            stays
        });
        item.as_object().is_some_and(|item| !item.is_empty())
    });
    for (_, operation) in super::operations(&mut part) {
        retain_members(&mut operation["responses"], |_, answer| {
            if let Some(links) = answer.get_mut("links") {
                retain_members(links, |_, link| {
                    link["operationId"]
                        .as_str()
                        .is_some_and(|to| kept.contains(to))
                });
            }
            true
        });
    }
    if let Some(tags) = part["tags"].as_array_mut() {
        tags.retain(|known| known["name"] == tag);
    }
    let used = used_components(whole, &part["paths"]);
    retain_members(&mut part["components"], |kind, components| {
        retain_members(components, |name, _| {
            used.contains(&format!("{COMPONENTS_PREFIX}{kind}/{name}"))
        });
        components.as_object().is_some_and(|left| !left.is_empty())
    });
    part
}

fn retain_members(object: &mut Value, mut stays: impl FnMut(&str, &mut Value) -> bool) {
    if let Some(object) = object.as_object_mut() {
        object.retain(|name, value| stays(name, value));
    }
}

/// Collects the components that these paths use, transitively.
fn used_components(whole: &Value, paths: &Value) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let mut unread = vec![paths];
    while let Some(value) = unread.pop() {
        match value {
            Value::Array(items) => unread.extend(items),
            Value::Object(members) => {
                for reference in references(members) {
                    let component = reference.strip_prefix('#');
                    let component = component.and_then(|pointer| whole.pointer(pointer));
                    if used.insert(reference) {
                        unread.extend(component);
                    }
                }
                unread.extend(members.values());
            }
            _ => {}
        }
    }
    used
}

/// Lists the components that an object refers to: by `$ref`, or as the security schemes of an operation.
fn references(object: &Map<String, Value>) -> Vec<String> {
    let reference = object.get("$ref").and_then(Value::as_str);
    let security = object.get("security").and_then(Value::as_array);
    let schemes = security.into_iter().flatten().filter_map(Value::as_object);
    let schemes = schemes.flat_map(Map::keys);
    let schemes = schemes.map(|name| format!("{COMPONENTS_PREFIX}securitySchemes/{name}"));
    reference
        .map(str::to_owned)
        .into_iter()
        .chain(schemes)
        .collect()
}
