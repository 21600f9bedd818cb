//! Rules of an action for the files of visitors that it takes or gives.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::model::{USER_ID_BIND, is_writing_statement, takes_file};
use svc_base::numbers::{WholeNumber, optional_whole_number};
use svc_sandbox::AllowedStatement;

/// Lengths of the squares that smaller pictures may fit, in pixels.
pub const PICTURE_SIZES: [u32; 6] = [64, 128, 256, 512, 1024, 2048];
/// Most sizes of an action.
const MAX_SIZES: usize = 3;
/// Most patterns of types of an action.
const MAX_TYPES: usize = 20;
/// Most characters of a pattern of types.
const MAX_TYPE_CHARS: usize = 100;

/// Rules for files, as an author sends them. An extension.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesRequest {
    /// Most bytes of a file; as many as the plan allows, if absent.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 1)]
    pub max_bytes: Option<u64>,
    /// Media types that are taken, as `image/png` or `image/*`; any, if absent.
    #[schema(min_items = 1, max_items = 20)]
    pub types: Option<Vec<String>>,
    /// Whether an upload need not use `:svc_user_id`; no, if absent.
    pub anonymous: Option<bool>,
    /// Squares that smaller copies of a picture fit: 1 to 3 of 64, 128, 256, 512, 1024 and 2048; none, if absent.
    #[serde(default, deserialize_with = "optional_sizes")]
    #[schema(min_items = 1, max_items = 3)]
    pub sizes: Option<Vec<u32>>,
    /// Whether pictures keep what does not draw: places, devices, comments; no, if absent.
    pub keep_metadata: Option<bool>,
    /// Whether other origins may embed the files; no, if absent.
    pub embed: Option<bool>,
}

/// Reads sizes, in any spelling of whole numbers. One that is too large for the type is none that is taken, either.
fn optional_sizes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<u32>>, D::Error> {
    let sizes = Option::<Vec<WholeNumber>>::deserialize(deserializer)?;
    let size = |number: WholeNumber| u32::try_from(number.0).unwrap_or(u32::MAX);
    Ok(sizes.map(|sizes| sizes.into_iter().map(size).collect()))
}

/// Rules for files of an action. Equal rules have equal JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActionFiles {
    /// Most bytes of a file, if fewer than the plan allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Patterns of the media types that are taken; any, if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// Whether an upload need not know the visitor.
    #[serde(default, skip_serializing_if = "is_false")]
    pub anonymous: bool,
    /// Squares that smaller copies of a picture fit, in ascending order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<u32>,
    /// Whether pictures keep what does not draw.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keep_metadata: bool,
    /// Whether other origins may embed the files.
    #[serde(default, skip_serializing_if = "is_false")]
    pub embed: bool,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

impl ActionFiles {
    /// Checks the rules of a statement.
    ///
    /// # Errors
    /// A sentence for the author of the action.
    pub(super) fn new(
        given: Option<FilesRequest>,
        statement: &AllowedStatement,
    ) -> Result<Self, String> {
        if !takes_file(statement) {
            return match given {
                None => Ok(Self::default()),
                Some(_) => Err(
                    "`files` is for an action with `:svc_file`: use the bind, or leave `files` out."
                        .to_owned(),
                ),
            };
        }
        let rules = given.unwrap_or_default().checked()?;
        let knows_visitor = statement.binds.iter().any(|bind| bind == USER_ID_BIND);
        if is_writing_statement(statement) && !knows_visitor && !rules.anonymous {
            return Err(
                "The action takes files from anybody: use `:svc_user_id`, so that a visitor must be signed in, or say `\"files\": {\"anonymous\": true}`."
                    .to_owned(),
            );
        }
        Ok(rules)
    }

    /// Whether a media type is taken.
    pub fn takes_type(&self, media_type: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => media_type.starts_with(start),
            None => pattern == media_type,
        };
        self.types.is_empty() || self.types.iter().any(matches)
    }

    /// Reads the column of a stored version.
    pub(super) fn from_column(json: Option<&str>) -> Option<Self> {
        json.map_or_else(
            || Some(Self::default()),
            |json| serde_json::from_str(json).ok(),
        )
    }

    /// Text of the column of a stored version; NULL where nothing differs from what goes without saying.
    pub(super) fn column(&self) -> Option<String> {
        let said = *self != Self::default();
        said.then(|| serde_json::to_string(self).unwrap_or_default())
    }

    /// Returns the rules as an author sends them, to define them again.
    pub(super) fn to_request(&self) -> FilesRequest {
        let some = |list: &Vec<String>| Some(list.clone()).filter(|list| !list.is_empty());
        FilesRequest {
            max_bytes: self.max_bytes,
            types: some(&self.types),
            anonymous: Some(self.anonymous),
            sizes: Some(self.sizes.clone()).filter(|sizes| !sizes.is_empty()),
            keep_metadata: Some(self.keep_metadata),
            embed: Some(self.embed),
        }
    }
}

impl FilesRequest {
    fn checked(self) -> Result<ActionFiles, String> {
        if self.max_bytes == Some(0) {
            return Err("`files.max_bytes` is 0: no file has so few bytes.".to_owned());
        }
        if self.types.as_ref().is_some_and(Vec::is_empty) {
            return Err(
                "`files.types` is empty: name what is taken, or leave it out for any type."
                    .to_owned(),
            );
        }
        let mut types = self.types.unwrap_or_default();
        if types.len() > MAX_TYPES {
            return Err(format!(
                "`files.types` has {} patterns; {MAX_TYPES} is the most. Write `image/*` for all pictures.",
                types.len()
            ));
        }
        for pattern in &mut types {
            pattern.make_ascii_lowercase();
            if !is_type_pattern(pattern) {
                return Err(format!(
                    "`files.types`: `{pattern}` is no media type. Write one as `image/png`, or `image/*` for a kind."
                ));
            }
        }
        let is_empty = self.sizes.as_ref().is_some_and(Vec::is_empty);
        let mut sizes = self.sizes.unwrap_or_default();
        sizes.sort_unstable();
        sizes.dedup();
        let is_wrong = |size: &u32| !PICTURE_SIZES.contains(size);
        if is_empty || sizes.len() > MAX_SIZES || sizes.iter().any(is_wrong) {
            return Err(
                "`files.sizes` takes 1 to 3 of 64, 128, 256, 512, 1024 and 2048.".to_owned(),
            );
        }
        Ok(ActionFiles {
            max_bytes: self.max_bytes,
            types,
            anonymous: self.anonymous.unwrap_or(false),
            sizes,
            keep_metadata: self.keep_metadata.unwrap_or(false),
            embed: self.embed.unwrap_or(false),
        })
    }
}

/// Whether a text is a media type, or a kind of them with a star.
fn is_type_pattern(pattern: &str) -> bool {
    let is_token = |text: &str| {
        let may_be = |byte: u8| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte);
        !text.is_empty() && text.bytes().all(may_be)
    };
    let parts = pattern.split_once('/');
    pattern.len() <= MAX_TYPE_CHARS
        && parts.is_some_and(|(kind, form)| is_token(kind) && (form == "*" || is_token(form)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_sandbox::StatementKind;

    fn statement(kind: StatementKind, binds: &[&str]) -> AllowedStatement {
        AllowedStatement {
            kind,
            binds: binds.iter().map(|bind| (*bind).to_owned()).collect(),
            returns_rows: false,
            tables: Vec::new(),
            view: None,
            parts: 0,
            start: 0,
            end: 0,
        }
    }

    fn given(json: &str) -> Option<FilesRequest> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn an_upload_knows_its_visitor_or_says_that_it_need_not() {
        let upload = |binds: &[&str], json| {
            ActionFiles::new(given(json), &statement(StatementKind::Write, binds))
        };
        upload(&["svc_file", "svc_user_id"], "null").unwrap();
        upload(&["svc_file"], r#"{"anonymous": true}"#).unwrap();
        for json in ["null", "{}", r#"{"anonymous": false}"#] {
            assert!(upload(&["svc_file"], json).is_err(), "{json}");
        }
        assert!(upload(&["a"], "{}").is_err());
        upload(&["a"], "null").unwrap();
        let read = statement(StatementKind::Read, &["svc_file"]);
        ActionFiles::new(given(r#"{"embed": true}"#), &read).unwrap();
    }

    #[test]
    fn rules_have_one_form() {
        let read = statement(StatementKind::Read, &["svc_file"]);
        let rules = |json: &str| ActionFiles::new(given(json), &read);
        let same = rules(r#"{"sizes": [512.0, 64, 512], "types": ["Image/*"]}"#).unwrap();
        let other = rules(r#"{"types": ["image/*"], "sizes": [64, 512], "embed": null}"#).unwrap();
        assert_eq!(same, other);
        let column = same.column().unwrap();
        assert_eq!(ActionFiles::from_column(Some(&column)), Some(same.clone()));
        let again = ActionFiles::new(Some(same.to_request()), &read).unwrap();
        assert_eq!(again, same);
        assert_eq!(rules("{}").unwrap().column(), None);
        for bad in [
            r#"{"max_bytes": 0}"#,
            r#"{"types": ["image"]}"#,
            r#"{"types": ["*/*"]}"#,
            r#"{"types": ["image/"]}"#,
            r#"{"sizes": [100]}"#,
            r#"{"sizes": []}"#,
            r#"{"sizes": [64, 128, 256, 512]}"#,
        ] {
            assert!(rules(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_star_stands_for_all_of_a_kind() {
        let rules = ActionFiles {
            types: vec!["image/*".to_owned(), "application/pdf".to_owned()],
            ..ActionFiles::default()
        };
        for (media_type, taken) in [
            ("image/png", true),
            ("application/pdf", true),
            ("application/octet-stream", false),
            ("text/plain", false),
        ] {
            assert_eq!(rules.takes_type(media_type), taken, "{media_type}");
        }
        assert!(ActionFiles::default().takes_type("text/plain"));
    }
}
