//! The description as it is answered: whole, or the part of one tag. Each is made and compressed at the first request for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, header};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use crate::config::Limits;
use crate::http::document::{Document, REVALIDATE};
use crate::http::extract::invalid;
use crate::http::problem::Problem;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Where references to components begin.
const COMPONENTS: &str = "#/components/";

/// Which part of the description.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DescriptionQuery {
    /// A tag: only its operations, with the components that they use. All of them, if absent.
    pub tag: Option<String>,
}

/// The whole description and its parts.
#[derive(Debug)]
pub struct Description {
    value: Arc<Value>,
    whole: OnceCell<Document>,
    parts: BTreeMap<String, OnceCell<Document>>,
}

impl Description {
    /// A finished description, with the numbers of the settings in their places.
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

    /// The whole, as a value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The whole, or the part of a tag.
    ///
    /// # Errors
    /// `invalid_request` for an unknown tag, naming those that there are.
    pub(super) async fn document(&self, tag: Option<&str>) -> Result<&Document, Problem> {
        let cell = match tag {
            None => &self.whole,
            Some(tag) => self.parts.get(tag).ok_or_else(|| self.unknown(tag))?,
        };
        let make = async || {
            let (value, tag) = (Arc::clone(&self.value), tag.map(str::to_owned));
            // Compressing takes a while.
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
        invalid(format!(
            "`tag`: there is no `{}`. Send one of {}, or leave it out.",
            tag.escape_default(),
            known.join(", ")
        ))
    }
}

/// The names of the tags, in their order.
pub(super) fn tags(description: &Value) -> impl Iterator<Item = &str> {
    let tags = description["tags"].as_array().into_iter().flatten();
    tags.filter_map(|tag| tag["name"].as_str())
}

fn to_document(value: &Value) -> std::io::Result<Document> {
    let headers = HeaderMap::from_iter([
        (header::CONTENT_TYPE, JSON),
        (header::CACHE_CONTROL, REVALIDATE),
    ]);
    Document::new(value.to_string().into(), &headers)
}

/// The part of a tag: its operations, their links among each other, and the components that they use.
fn filter_by_tag(whole: &Value, tag: &str) -> Value {
    let mut part = whole.clone();
    let mut kept = BTreeSet::new();
    retain(&mut part["paths"], |_, item| {
        retain(item, |_, operation| {
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
        retain(&mut operation["responses"], |_, answer| {
            if let Some(links) = answer.get_mut("links") {
                retain(links, |_, link| {
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
    retain(&mut part["components"], |kind, components| {
        retain(components, |name, _| {
            used.contains(&format!("{COMPONENTS}{kind}/{name}"))
        });
        components.as_object().is_some_and(|left| !left.is_empty())
    });
    part
}

fn retain(object: &mut Value, mut stays: impl FnMut(&str, &mut Value) -> bool) {
    if let Some(object) = object.as_object_mut() {
        object.retain(|name, value| stays(name, value));
    }
}

/// The components that these paths use, and those that they use in turn.
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

/// Lists what an object refers to: by reference, or as an operation to the schemes of its security.
fn references(object: &Map<String, Value>) -> Vec<String> {
    let reference = object.get("$ref").and_then(Value::as_str);
    let security = object.get("security").and_then(Value::as_array);
    let schemes = security.into_iter().flatten().filter_map(Value::as_object);
    let schemes = schemes.flat_map(Map::keys);
    let schemes = schemes.map(|name| format!("{COMPONENTS}securitySchemes/{name}"));
    reference
        .map(str::to_owned)
        .into_iter()
        .chain(schemes)
        .collect()
}
