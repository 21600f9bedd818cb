//! Values on the wire: JSON on one side, SQLite on the other.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::types::ValueRef;
use serde::Deserialize;
use serde_json::value::RawValue;

use svc_base::numbers::WholeNumber;

/// A value that a parameter is bound to.
pub use rusqlite::types::Value;

/// The named values of a call, in the order in which they came.
pub type Params = Vec<(String, Value)>;

/// Value of a step's parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum BatchStepParam {
    /// Value that the request has.
    Value(Value),
    /// Value of a column in the first row of an earlier step.
    From {
        /// Which step, from 0.
        step: usize,
        /// The column's name.
        column: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlobParam {
    base64: String,
}

/// Reads a parameter: null, a boolean (as 0 or 1), a number, a string, or `{"base64": "…"}`.
///
/// # Errors
/// A predicate for the end of a sentence, such as `is not valid base64`.
pub fn parse(json: &RawValue) -> Result<Value, &'static str> {
    let text = json.get();
    match text.as_bytes().first() {
        Some(b'n') => Ok(Value::Null),
        Some(b't') => Ok(Value::Integer(1)),
        Some(b'f') => Ok(Value::Integer(0)),
        Some(b'"') => serde_json::from_str(text)
            .map(Value::Text)
            .map_err(|_| "is not valid text"),
        Some(b'-' | b'0'..=b'9') => parse_number(text),
        Some(b'{') => {
            let blob: BlobParam = serde_json::from_str(text)
                .map_err(|_| "is an object other than {\"base64\": \"…\"}")?;
            STANDARD
                .decode(blob.base64)
                .map(Value::Blob)
                .map_err(|_| "is not valid base64")
        }
        _ => Err("is an array: send null, a boolean, a number, a string or {\"base64\": \"…\"}"),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EarlierRowParam {
    from: (WholeNumber, String),
}

/// Reads a parameter of a batch: what [`parse`] reads, or `{"from": [op, "column"]}`.
///
/// # Errors
/// A predicate for the end of a sentence, such as `is not valid base64`.
pub fn parse_step_param(json: &RawValue) -> Result<BatchStepParam, &'static str> {
    match serde_json::from_str::<EarlierRowParam>(json.get()) {
        Ok(EarlierRowParam {
            from: (WholeNumber(step), column),
        }) => usize::try_from(step)
            .map(|step| BatchStepParam::From { step, column })
            .map_err(|_| "is from an op that cannot be"),
        Err(_) => match parse(json) {
            Err(_) if json.get().starts_with('{') => {
                Err("is an object other than {\"base64\": \"…\"} and {\"from\": [op, \"column\"]}")
            }
            parsed => parsed.map(BatchStepParam::Value),
        },
    }
}

fn parse_number(text: &str) -> Result<Value, &'static str> {
    if text.contains(['.', 'e', 'E']) {
        match text.parse::<f64>() {
            Ok(real) if real.is_finite() => Ok(Value::Real(real)),
            _ => Err("is a number outside of what a double holds"),
        }
    } else {
        text.parse()
            .map(Value::Integer)
            .map_err(|_| "is an integer outside of 64 bits")
    }
}

/// Writes a value of a row as JSON. A non-finite number becomes null; invalid UTF-8 is replaced.
pub(super) fn write_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Null => out.extend_from_slice(b"null"),
        ValueRef::Integer(integer) => write_json(out, &integer),
        ValueRef::Real(real) if real.is_finite() => write_json(out, &real),
        ValueRef::Real(_) => out.extend_from_slice(b"null"),
        ValueRef::Text(bytes) if is_plain(bytes) => {
            out.push(b'"');
            out.extend_from_slice(bytes);
            out.push(b'"');
        }
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => write_json(out, text),
            Err(_) => write_json(out, &*String::from_utf8_lossy(bytes)),
        },
        ValueRef::Blob(bytes) => {
            out.extend_from_slice(b"{\"base64\":\"");
            out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
            out.extend_from_slice(b"\"}");
        }
    }
}

/// Writes a value as JSON, which [`parse`] reads; a non-finite number becomes null.
pub fn to_json(value: &Value) -> String {
    let mut json = Vec::new();
    write_value(&mut json, value.into());
    String::from_utf8_lossy(&json).into_owned()
}

/// Whether a text is printable ASCII that JSON need not escape. Most is, so it is checked many bytes at once.
fn is_plain(text: &[u8]) -> bool {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') & (byte != b'"') & (byte != b'\\');
    text.iter().fold(true, |all, byte| all & plain(*byte))
}

/// Converts a value of a row for a parameter. Invalid UTF-8 is replaced, as in results.
pub(super) fn to_value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => Value::Integer(integer),
        ValueRef::Real(real) => Value::Real(real),
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

/// Writes plain data as JSON into memory, which cannot fail.
pub(super) fn write_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_goes_out_as_serde_json_writes_it_whatever_its_bytes() {
        for byte in 0..=u8::MAX {
            let bytes = [b'a', byte, b'b'];
            let mut out = Vec::new();
            write_value(&mut out, ValueRef::Text(&bytes));
            let text = String::from_utf8_lossy(&bytes);
            assert_eq!(out, serde_json::to_vec(&text).unwrap(), "{byte}");
        }
    }

    fn parsed(json: &str) -> Result<Value, &'static str> {
        parse(&serde_json::from_str::<Box<RawValue>>(json).unwrap())
    }

    #[test]
    fn values_come_in_exactly() {
        for (json, value) in [
            ("null", Value::Null),
            ("true", Value::Integer(1)),
            ("false", Value::Integer(0)),
            ("-9223372036854775808", Value::Integer(i64::MIN)),
            ("9223372036854775807", Value::Integer(i64::MAX)),
            ("1.0", Value::Real(1.0)),
            ("1e3", Value::Real(1000.0)),
            ("\"a\\u00e9\"", Value::Text("aé".into())),
            ("{\"base64\":\"AAEC\"}", Value::Blob(vec![0, 1, 2])),
        ] {
            assert_eq!(parsed(json), Ok(value), "{json}");
        }
        for json in [
            "9223372036854775808",
            "-9223372036854775809",
            "1e999",
            "[]",
            "{}",
            "{\"base64\":\"?\"}",
            "{\"base64\":\"\",\"x\":1}",
            "{\"base64\":1}",
        ] {
            assert!(parsed(json).is_err(), "{json}");
        }
    }

    #[test]
    fn values_go_out_exactly() {
        for (value, json) in [
            (ValueRef::Null, "null"),
            (ValueRef::Integer(i64::MIN), "-9223372036854775808"),
            (ValueRef::Real(1.0), "1.0"),
            (ValueRef::Real(f64::INFINITY), "null"),
            (ValueRef::Text(b"\"<\x01"), "\"\\\"<\\u0001\""),
            (ValueRef::Text(b"\xff"), "\"\u{fffd}\""),
            (ValueRef::Text("a\u{e9}".as_bytes()), "\"a\u{e9}\""),
            (ValueRef::Text(b"a\\b~\x7f"), "\"a\\\\b~\x7f\""),
            (ValueRef::Blob(&[0, 255]), "{\"base64\":\"AP8=\"}"),
        ] {
            let mut out = Vec::new();
            write_value(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), json);
        }
    }
}
