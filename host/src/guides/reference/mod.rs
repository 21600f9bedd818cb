//! The reference of the API as Markdown, made from the OpenAPI description: a heading for each operation, then the types.

mod parts;
mod schemas;

use std::fmt::Write as _;

use serde_json::{Map, Value};

use parts::{Parts, Section};
use schemas::{escape_markup, table_cell, type_text, write_types};

/// The methods, in the order in which people read them.
const METHODS: [&str; 6] = ["get", "post", "put", "patch", "delete", "head"];

type SchemaMembers = Map<String, Value>;

/// An operation with its path and its method.
struct DescribedOperation<'a> {
    path: &'a str,
    method: &'a str,
    definition: &'a SchemaMembers,
}

/// Reference of the API: as one text, and in parts.
#[derive(Debug)]
pub(super) struct Reference {
    /// All of it.
    pub(super) whole: String,
    /// List of all calls, with links to the parts.
    pub(super) overview: String,
    pub(super) parts: Vec<ReferencePart>,
}

/// Part of the reference: the calls of a tag, or the types.
#[derive(Debug)]
pub(super) struct ReferencePart {
    /// Name of its page.
    pub(super) name: String,
    pub(super) title: String,
    pub(super) text: String,
}

impl Reference {
    /// Writes the reference from the OpenAPI description; its list of calls is at the page `name`.
    pub(super) fn new(description: &Value, base_url: &str, name: &str) -> Self {
        let list = list_of_calls(description, base_url);
        let sections = sections(description, base_url);
        let whole = sections.iter().fold(list.clone(), |whole, section| {
            whole + &section.heading("##") + &section.body
        });
        let parts = Parts::new(name, &sections);
        Self {
            whole,
            overview: parts.link(&list, None),
            parts: parts.write(&sections),
        }
    }
}

/// Writes the head of the reference, with links to all calls.
fn list_of_calls(description: &Value, base_url: &str) -> String {
    let operations = operations(description);
    let mut out = format!(
        "# API reference\n\nEvery call of `{base_url}`, made from its OpenAPI description (`GET /api/v1/openapi.json`). \
         [The API](api) says what all calls have in common: errors, repeating safely, limits.\n\n"
    );
    for (tag, _) in tags(description) {
        let _ = write!(out, "**{}**: ", capitalize(tag));
        let of_tag = operations.iter().filter(|one| one.has_tag(tag));
        let links = of_tag.map(|one| format!("[{}](#{})", one.name(), one.id()));
        let links: Vec<_> = links.collect();
        let _ = write!(out, "{}.\n\n", links.join(", "));
    }
    out
}

/// Writes the calls of each tag, then the types.
fn sections(description: &Value, base_url: &str) -> Vec<Section> {
    let operations = operations(description);
    let mut sections: Vec<Section> = tags(description)
        .into_iter()
        .map(|(tag, about)| {
            let mut body = String::new();
            for operation in operations.iter().filter(|one| one.has_tag(tag)) {
                operation.write(&mut body, base_url);
            }
            Section {
                title: capitalize(tag),
                about: escape_markup(about),
                body,
            }
        })
        .collect();
    let mut types = String::new();
    write_types(&mut types, description);
    sections.push(Section {
        title: "Types".to_owned(),
        about: String::new(),
        body: types,
    });
    sections
}

/// Lists the tags with their descriptions.
fn tags(description: &Value) -> Vec<(&str, &str)> {
    let tags = description["tags"].as_array().into_iter().flatten();
    tags.map(|tag| {
        (
            string_or_empty(&tag["name"]),
            string_or_empty(&tag["description"]),
        )
    })
    .collect()
}

/// Lists all operations by path, then by method.
fn operations(description: &Value) -> Vec<DescribedOperation<'_>> {
    let paths = description["paths"].as_object().into_iter().flatten();
    paths
        .flat_map(|(path, item)| {
            METHODS.iter().filter_map(move |method| {
                let definition = item[*method].as_object()?;
                Some(DescribedOperation {
                    path,
                    method,
                    definition,
                })
            })
        })
        .collect()
}

impl DescribedOperation<'_> {
    fn has_tag(&self, tag: &str) -> bool {
        let tags = self.definition.get("tags").and_then(Value::as_array);
        tags.is_some_and(|tags| tags.iter().any(|own| own == tag))
    }

    fn text_of(&self, member: &str) -> &str {
        self.definition
            .get(member)
            .map(string_or_empty)
            .unwrap_or_default()
    }

    fn name(&self) -> String {
        escape_markup(self.text_of("summary"))
    }

    fn id(&self) -> &str {
        self.text_of("operationId")
    }

    fn write(&self, out: &mut String, base_url: &str) {
        let (method, path) = (self.method.to_uppercase(), self.path);
        let _ = write!(
            out,
            "### <a id=\"{}\"></a>{}\n\n`{method} {path}`\n\n",
            self.id(),
            self.name()
        );
        if !self.text_of("description").is_empty() {
            let _ = write!(out, "{}\n\n", escape_markup(self.text_of("description")));
        }
        let _ = write!(out, "{}\n\n", self.authority_text());
        self.parameters(out);
        self.body(out);
        self.answers(out);
        self.errors(out);
        self.example(out, base_url);
    }

    /// Describes the authority that the call needs.
    fn authority_text(&self) -> String {
        let schemes = self.schemes();
        match self.text_of("x-role") {
            "" if schemes.is_empty() => "For everybody.".to_owned(),
            "" if schemes.contains(&"delete_token") => {
                "For the holder of the share's `delete_token`, as `Authorization: Bearer`."
                    .to_owned()
            }
            "" if self.is_open() => {
                "For everybody; an owner's credential, as `Authorization: Bearer`, may do more."
                    .to_owned()
            }
            "" => "For the owner's credential, as `Authorization: Bearer`.".to_owned(),
            role => format!(
                "For a credential whose role is at least {role}, as `Authorization: Bearer`."
            ),
        }
    }

    /// Lists the security schemes of the operation.
    fn schemes(&self) -> Vec<&str> {
        let security = self.definition.get("security").and_then(Value::as_array);
        let security = security.into_iter().flatten().filter_map(Value::as_object);
        security.flat_map(Map::keys).map(String::as_str).collect()
    }

    /// Whether the operation works without a credential, too.
    fn is_open(&self) -> bool {
        let security = self.definition.get("security").and_then(Value::as_array);
        let is_none = |one: &Value| one.as_object().is_some_and(Map::is_empty);
        security.is_some_and(|all| all.iter().any(is_none))
    }

    fn parameters(&self, out: &mut String) {
        let parameters = self.definition.get("parameters").and_then(Value::as_array);
        let Some(parameters) = parameters.filter(|all| !all.is_empty()) else {
            return;
        };
        out.push_str("| parameter | in | type | about |\n|---|---|---|---|\n");
        for parameter in parameters {
            let needed = match parameter["required"] == true {
                true => "Required. ",
                false => "",
            };
            let _ = writeln!(
                out,
                "| `{}` | {} | {} | {needed}{} |",
                string_or_empty(&parameter["name"]),
                string_or_empty(&parameter["in"]),
                type_text(&parameter["schema"]),
                table_cell(string_or_empty(&parameter["description"]))
            );
        }
        out.push('\n');
    }

    fn body(&self, out: &mut String) {
        let content = self
            .definition
            .get("requestBody")
            .map(|body| &body["content"]);
        let kinds = body_types(content);
        if !kinds.is_empty() {
            let _ = write!(out, "Body: {}.\n\n", kinds.join(", or "));
        }
    }

    fn answers(&self, out: &mut String) {
        out.push_str("| answer | about | body |\n|---|---|---|\n");
        for (status, answer) in self.responses().filter(|(status, _)| !is_error(status)) {
            let _ = writeln!(
                out,
                "| {status} | {} | {} |",
                table_cell(string_or_empty(&answer["description"])),
                body_types(Some(&answer["content"])).join(", or ")
            );
        }
        out.push('\n');
    }

    fn errors(&self, out: &mut String) {
        let errors = self.responses().filter(|(status, _)| is_error(status));
        let errors = errors.filter_map(|(status, answer)| {
            let examples = answer["content"]["application/problem+json"]["examples"].as_object()?;
            let codes: Vec<_> = examples.keys().map(|code| format!("`{code}`")).collect();
            Some(format!("{status} {}", codes.join(", ")))
        });
        let errors: Vec<_> = errors.collect();
        if !errors.is_empty() {
            let _ = write!(out, "[Errors](api#errors): {}.\n\n", errors.join("; "));
        }
    }

    fn responses(&self) -> impl Iterator<Item = (&String, &Value)> {
        let responses = self.definition.get("responses").and_then(Value::as_object);
        responses.into_iter().flatten()
    }

    /// Writes an example: a shell command and its answer.
    fn example(&self, out: &mut String, base_url: &str) {
        let body = self
            .definition
            .get("requestBody")
            .map(|body| &body["content"]);
        let body = body.and_then(|content| example(&content["application/json"]));
        let answer = self.responses().find(|(status, _)| status.starts_with('2'));
        let answer = answer.and_then(|(_, answer)| example(&answer["content"]["application/json"]));
        if body.is_none() && answer.is_none() {
            return;
        }
        let mut command = String::from("curl -fsS");
        let usual = match body {
            Some(_) => "post",
            None => "get",
        };
        if self.method != usual {
            let _ = write!(command, " -X {}", self.method.to_uppercase());
        }
        let _ = write!(
            command,
            " \"{base_url}{}\"",
            with_shell_variables(self.path)
        );
        if self.schemes().contains(&"bearer") && !self.is_open() {
            command.push_str(" -H \"Authorization: Bearer $SVC_CREDENTIAL\"");
        }
        if let Some(body) = body {
            let _ = write!(command, " -d '{}'", body.to_string().replace('\'', "'\\''"));
        }
        let _ = write!(out, "```sh\n{command}\n```\n\n");
        if let Some(answer) = answer {
            let _ = write!(out, "```json\n{answer:#}\n```\n\n");
        }
    }
}

/// Lists the possible bodies by media type.
fn body_types(content: Option<&Value>) -> Vec<String> {
    let content = content.and_then(Value::as_object).into_iter().flatten();
    let bodies = content.map(|(media, is)| match media.as_str() {
        "application/json" => type_text(&is["schema"]),
        media => format!("`{media}`"),
    });
    bodies.collect()
}

/// Returns the first example of a body.
fn example(media: &Value) -> Option<&Value> {
    let examples = media["examples"].as_object()?;
    examples.values().next().map(|first| &first["value"])
}

/// Replaces the parameters of a path with shell variables.
fn with_shell_variables(path: &str) -> String {
    let mut parts = path.split('{');
    let mut done = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap_or((part, ""));
        let _ = write!(done, "${}{rest}", name.to_uppercase());
    }
    done
}

fn is_error(status: &str) -> bool {
    status.starts_with(['4', '5'])
}

/// Capitalizes the first letter of a text.
fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

fn string_or_empty(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn description() -> Value {
        json!({
            "tags": [{ "name": "notes", "description": "What is written | kept." }],
            "paths": { "/notes/{id}": { "put": {
                "tags": ["notes"], "operationId": "put_note", "summary": "Write a note", "description": "Keeps <b> and `<i>`.",
                "x-role": "editor", "security": [{ "bearer": [] }],
                "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" }, "description": "Which | one." }],
                "requestBody": { "content": { "application/json": {
                    "schema": { "$ref": "#/components/schemas/Note" },
                    "examples": { "a": { "value": { "text": "it's" } } }
                } } },
                "responses": {
                    "200": { "description": "Kept.", "content": { "application/json": {
                        "schema": { "type": "array", "items": { "$ref": "#/components/schemas/Note" } },
                        "examples": { "a": { "value": [{ "text": "x" }] } }
                    } } },
                    "404": { "description": "-", "content": { "application/problem+json": { "examples": { "not_found": {} } } } }
                }
            } } },
            "components": { "schemas": { "Note": {
                "type": "object", "description": "A note.", "required": ["text"],
                "properties": { "text": { "type": "string", "description": "What it says." }, "at": { "type": ["integer", "null"] } }
            } } }
        })
    }

    #[test]
    fn an_operation_has_everything_under_its_heading() {
        let text = Reference::new(&description(), "https://svc.example", "ref").whole;
        for part in [
            "**Notes**: [Write a note](#put_note).\n",
            "## Notes\n\nWhat is written | kept.\n",
            "### <a id=\"put_note\"></a>Write a note\n\n`PUT /notes/{id}`\n\nKeeps &lt;b> and `<i>`.\n\nFor a credential whose role is at least editor, as `Authorization: Bearer`.\n",
            "| `id` | path | string | Required. Which \\| one. |\n",
            "Body: [Note](#type-Note).\n",
            "| 200 | Kept. | array of [Note](#type-Note) |\n",
            "[Errors](api#errors): 404 `not_found`.\n",
            "curl -fsS -X PUT \"https://svc.example/notes/$ID\" -H \"Authorization: Bearer $SVC_CREDENTIAL\" -d '{\"text\":\"it'\\''s\"}'\n",
            "```json\n[\n  {\n    \"text\": \"x\"\n  }\n]\n```\n",
            "### <a id=\"type-Note\"></a>Note\n\nA note.\n",
            "| `at` | integer or null | |\n",
            "| `text` | string | Required. What it says. |\n",
        ] {
            assert!(text.contains(part), "{part}\nin\n{text}");
        }
    }

    #[test]
    fn parts_lead_to_each_other() {
        let reference = Reference::new(&description(), "https://svc.example", "ref");
        let list = &reference.overview;
        assert!(
            list.contains("**Notes**: [Write a note](ref-notes#put_note).\n"),
            "{list}"
        );
        let [notes, types] = &reference.parts[..] else {
            panic!("{reference:?}");
        };
        assert_eq!((&*notes.name, &*types.name), ("ref-notes", "ref-types"));
        for part in [
            "# API: notes\n\nWhat is written | kept.\n",
            "## <a id=\"put_note\"></a>Write a note\n",
            "Body: [Note](ref-types#type-Note).\n",
            "[Errors](api#errors): 404",
        ] {
            assert!(notes.text.contains(part), "{part}\nin\n{}", notes.text);
        }
        assert!(
            types
                .text
                .starts_with("# API: types\n\n## <a id=\"type-Note\"></a>Note\n")
        );
    }
}
