//! Mathematical functions, which the bundled build of SQLite leaves out. They return NULL for what is no number, and where the
//! result is undefined.

use rusqlite::functions::Context;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};

use super::DETERMINISTIC_FLAGS;

type UnaryFunction = fn(f64) -> f64;
type BinaryFunction = fn(f64, f64) -> f64;

const UNARY_FUNCTIONS: &[(&str, UnaryFunction)] = &[
    ("acos", f64::acos),
    ("acosh", f64::acosh),
    ("asin", f64::asin),
    ("asinh", f64::asinh),
    ("atan", f64::atan),
    ("atanh", f64::atanh),
    ("cos", f64::cos),
    ("cosh", f64::cosh),
    ("degrees", f64::to_degrees),
    ("exp", f64::exp),
    ("ln", |x| positive_or_nan(x).ln()),
    ("log", |x| positive_or_nan(x).log10()),
    ("log10", |x| positive_or_nan(x).log10()),
    ("log2", |x| positive_or_nan(x).log2()),
    ("radians", f64::to_radians),
    ("sin", f64::sin),
    ("sinh", f64::sinh),
    ("sqrt", f64::sqrt),
    ("tan", f64::tan),
    ("tanh", f64::tanh),
];

const BINARY_FUNCTIONS: &[(&str, BinaryFunction)] = &[
    ("atan2", f64::atan2),
    ("log", |base, x| {
        let base = positive_or_nan(base).ln();
        positive_or_nan(x).ln() / positive_or_nan(base)
    }),
    ("mod", |x, y| x % y),
    ("pow", f64::powf),
    ("power", f64::powf),
];

/// Functions that return integers unchanged.
const ROUNDING_FUNCTIONS: &[(&str, UnaryFunction)] = &[
    ("ceil", f64::ceil),
    ("ceiling", f64::ceil),
    ("floor", f64::floor),
    ("trunc", f64::trunc),
];

/// Registers the functions.
pub(super) fn register(connection: &Connection) -> Result<()> {
    for (name, function) in UNARY_FUNCTIONS {
        connection.create_scalar_function(*name, 1, DETERMINISTIC_FLAGS, move |c| {
            Ok(real_argument(c, 0).map(function))
        })?;
    }
    for (name, function) in BINARY_FUNCTIONS {
        connection.create_scalar_function(*name, 2, DETERMINISTIC_FLAGS, move |c| {
            Ok(real_argument(c, 0)
                .zip(real_argument(c, 1))
                .map(|(x, y)| function(x, y)))
        })?;
    }
    for (name, function) in ROUNDING_FUNCTIONS {
        connection.create_scalar_function(*name, 1, DETERMINISTIC_FLAGS, move |c| {
            Ok(match numeric_value(c.get_raw(0)) {
                Value::Real(real) => Value::Real(function(real)),
                other => other,
            })
        })?;
    }
    connection.create_scalar_function("pi", 0, DETERMINISTIC_FLAGS, |_| Ok(std::f64::consts::PI))
}

/// Maps non-positive input to NaN, which SQLite stores as NULL.
fn positive_or_nan(number: f64) -> f64 {
    if number > 0.0 { number } else { f64::NAN }
}

fn real_argument(context: &Context<'_>, index: usize) -> Option<f64> {
    match numeric_value(context.get_raw(index)) {
        #[allow(clippy::cast_precision_loss, reason = "as SQLite does")]
        Value::Integer(integer) => Some(integer as f64),
        Value::Real(real) => Some(real),
        _ => None,
    }
}

/// Converts a value to a number: text only if all of it is a number; else NULL.
fn numeric_value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Integer(integer) => Value::Integer(integer),
        ValueRef::Real(real) => Value::Real(real),
        ValueRef::Text(text) => parse_number(text).unwrap_or(Value::Null),
        ValueRef::Null | ValueRef::Blob(_) => Value::Null,
    }
}

fn parse_number(text: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.trim_matches([' ', '\t', '\n', '\x0B', '\x0C', '\r']);
    // Rust also parses names such as `inf`, which SQLite does not.
    if !text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
    {
        return None;
    }
    match text.parse() {
        Ok(integer) => Some(Value::Integer(integer)),
        Err(_) => text.parse().ok().map(Value::Real),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::answer;

    #[test]
    fn they_answer_as_their_documentation_says() {
        for (expression, expected) in [
            ("sqrt(9)", "3.0"),
            ("sqrt(-1)", "NULL"),
            ("sqrt('16')", "4.0"),
            ("sqrt(' 2.25 ')", "1.5"),
            ("sqrt('x')", "NULL"),
            ("sqrt('inf')", "NULL"),
            ("sqrt('')", "NULL"),
            ("sqrt(x'39')", "NULL"),
            ("sqrt(NULL)", "NULL"),
            ("ceil(1.2)", "2.0"),
            ("ceiling(-1.2)", "-1.0"),
            ("floor(-1.2)", "-2.0"),
            ("trunc(-1.7)", "-1.0"),
            ("floor(7)", "7"),
            ("floor('7')", "7"),
            ("floor('9223372036854775808')", "9.2233720368547758e+18"),
            ("log(100)", "2.0"),
            ("log10(0)", "NULL"),
            ("log(2, 8)", "3.0"),
            ("log(1, 8)", "NULL"),
            ("log(2, -8)", "NULL"),
            ("log2(8)", "3.0"),
            ("ln(exp(1))", "1.0"),
            ("mod(7.5, 2)", "1.5"),
            ("mod(-7, 3)", "-1.0"),
            ("mod(7, 0)", "NULL"),
            ("pow(2, 10)", "1024.0"),
            ("power(2, -1)", "0.5"),
            ("round(degrees(pi()))", "180.0"),
            ("round(radians(180), 4)", "3.1416"),
            ("round(atan2(1, 1) * 4, 4)", "3.1416"),
            ("round(sin(pi() / 2) + cos(0) + tan(0), 9)", "2.0"),
            ("round(asin(1) + acos(1) + atan(0), 4)", "1.5708"),
            ("round(sinh(1), 4)", "1.1752"),
            ("round(cosh(1) + tanh(0), 4)", "1.5431"),
            ("round(asinh(1) + acosh(1) + atanh(0), 4)", "0.8814"),
        ] {
            assert_eq!(answer(expression), expected, "{expression}");
        }
    }
}
