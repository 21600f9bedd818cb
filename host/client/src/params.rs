//! Params of actions and binds of queries on the command line.

use serde_json::{Map, Value};

use super::error::{CliFailure, Result};

/// Parses `name=text` and `name:=JSON`.
///
/// # Errors
/// When an argument has another form, or a name comes twice.
pub(super) fn parse_params(given: &[String]) -> Result<Value> {
    let mut params = Map::new();
    for argument in given {
        let Some((name, text)) = argument.split_once('=') else {
            return Err(CliFailure::local(format!(
                "`{argument}` is no param: write name=text, or name:=JSON for a number or null."
            )));
        };
        let (name, value) = match name.strip_suffix(':') {
            Some(name) => {
                let value = serde_json::from_str(text).map_err(|error| {
                    CliFailure::local(format!(
                        "`{name}` is not JSON: {error}. `{name}=…` takes a text as it is."
                    ))
                })?;
                (name, value)
            }
            None => (name, Value::from(text)),
        };
        if params.insert(name.to_owned(), value).is_some() {
            return Err(CliFailure::local(format!("`{name}` is given twice.")));
        }
    }
    Ok(Value::Object(params))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_and_json_are_told_apart() {
        let given = |all: &[&str]| {
            parse_params(&all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(
            given(&["a=5", "b:=5", "c=x=y", "d:=null", "e="]).unwrap(),
            json!({"a": "5", "b": 5, "c": "x=y", "d": null, "e": ""})
        );
        for wrong in [&["a"][..], &["a:=x"], &["a=1", "a=2"]] {
            assert!(given(wrong).is_err(), "{wrong:?}");
        }
    }
}
