//! The documents of the description: the whole, and one for each tag. Each is made and compressed at its first request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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

/// The description with its documents.
#[derive(Debug)]
pub struct ApiDescription {
    value: Arc<Value>,
    whole: OnceCell<EncodedDocument>,
    parts: BTreeMap<String, OnceCell<EncodedDocument>>,
}

impl ApiDescription {
    /// Takes a complete description, and fills in its placeholders.
    pub(super) fn new(value: &Value, limits: &Limits) -> Self {
        let said = limits.fill_in(&value.to_string());
        let value: Value = serde_json::from_str(&said).unwrap_or_default();
        let tags = tags(&value).map(|tag| (tag.to_owned(), OnceCell::new()));
        Self {
            parts: tags.collect(),
            whole: OnceCell::new(),
            value: Arc::new(value),
        }
    }

    /// Returns the whole description as JSON.
    pub fn value(&self) -> &Value {
        &self.value
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
            let (value, tag) = (Arc::clone(&self.value), tag.map(str::to_owned));
            // Compression takes a while.
            let made = tokio::task::spawn_blocking(move || match tag {
                None => to_document(&value),
                Some(tag) => to_document(&filter_by_tag(&value, &tag)),
            });
            let made = made.await.map_err(|error| Problem::internal(&error))?;
            made.map_err(|error| Problem::internal(&error))
        };
        cell.get_or_try_init(make).await
    }

    fn unknown(&self, tag: &str) -> Problem {
        let known: Vec<String> = tags(&self.value).map(|tag| format!("`{tag}`")).collect();
        invalid_request(format!(
            "`tag`: there is no `{}`. Send one of {}, or leave it out.",
            tag.escape_default(),
            known.join(", ")
        ))
    }
}

/// Lists the names of the tags, in their order.
pub(super) fn tags(description: &Value) -> impl Iterator<Item = &str> {
    let tags = description["tags"].as_array().into_iter().flatten();
    tags.filter_map(|tag| tag["name"].as_str())
}

fn to_document(value: &Value) -> std::io::Result<EncodedDocument> {
    let headers = HeaderMap::from_iter([
        (header::CONTENT_TYPE, JSON_TYPE),
        (header::CACHE_CONTROL, REVALIDATE),
    ]);
    EncodedDocument::new(value.to_string().into(), &headers)
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
