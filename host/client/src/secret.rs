//! Secrets from a prompt or from standard input, and never from arguments, which every user of the machine can read.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::Path;

use super::error::{CliFailure, Result};

/// The longest secret, in bytes.
const MAX_BYTES: u64 = 4096;

/// Asks for a secret at the terminal without showing it, or reads the first line of standard input.
///
/// # Errors
/// When the secret is empty or cannot be read.
pub(super) fn prompt(what: &str) -> Result<String> {
    let input = std::io::stdin();
    let secret = if input.is_terminal() {
        rpassword::prompt_password(format!("{what}: "))
    } else {
        let mut line = String::new();
        let mut few = std::io::Read::take(input.lock(), MAX_BYTES);
        few.read_line(&mut line).map(|_| line)
    };
    let secret = secret
        .map_err(|error| CliFailure::local(format!("The {what} cannot be read: {error}.")))?;
    trim_secret(what, &secret)
}

/// Reads the first line of a file.
///
/// # Errors
/// When the secret is empty or cannot be read.
pub(super) fn read_from_file(what: &str, path: &Path) -> Result<String> {
    let failed = |error: std::io::Error| CliFailure::file_system("Reading", path, &error);
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut line = String::new();
    let few = std::io::Read::take(file, MAX_BYTES);
    std::io::BufReader::new(few)
        .read_line(&mut line)
        .map_err(failed)?;
    trim_secret(what, &line)
}

fn trim_secret(what: &str, line: &str) -> Result<String> {
    let secret = line.trim_end_matches(['\r', '\n']);
    if secret.is_empty() {
        return Err(CliFailure::local(format!(
            "The {what} is empty: type it when you are asked, or send it on standard input."
        )));
    }
    Ok(secret.to_owned())
}
