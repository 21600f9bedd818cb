//! Examples without chance: ids, visitors and tokens by their first place.

use svc_base::ids::RevisionId;

use super::*;

/// Replaces each random id by one that says in which place it first stands.
pub(super) fn with_stable_ids(text: &str) -> String {
    let mut ids: Vec<&str> = Vec::new();
    let is_id = |text: &&str| {
        let dashes = |at: usize| matches!(at, 8 | 13 | 18 | 23);
        text.bytes().enumerate().all(|(at, byte)| match dashes(at) {
            true => byte == b'-',
            false => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
    };
    for at in 0..text.len() {
        let id = text.get(at..at + 36).filter(is_id);
        ids.extend(id.filter(|id| !ids.contains(id)));
    }
    let stable = |text: String, (at, id): (usize, &&str)| {
        let stable = format!("{ID}{at:012x}");
        text.replace(id, &stable)
            .replace(&host_label(id), &host_label(&stable))
    };
    ids.iter().enumerate().fold(text.to_owned(), stable)
}

/// Label of a host that stands for an id.
fn host_label(id: &str) -> String {
    let id: RevisionId = id.parse().unwrap();
    id.to_host_characters()
}

/// Replaces each random visitor by one and the same.
pub(super) fn with_stable_visitors(text: &str) -> String {
    let mut parts = text.split("usr_");
    let mut stable = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        let is_random = part.len() - rest.len() == 22;
        write!(
            stable,
            "usr_{}",
            if is_random {
                "7Jp2mQ0aZc91LxTvBnRk4s"
            } else {
                ""
            }
        )
        .unwrap();
        stable.push_str(if is_random { rest } else { part });
    }
    stable
}

/// Replaces each random file of a visitor by one and the same.
pub(super) fn with_stable_files(text: &str) -> String {
    let mut parts = text.split("file_");
    let mut stable = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        let is_random = part.len() - rest.len() == 26;
        stable.push_str("file_");
        stable.push_str(if is_random {
            "0q8rx0q8rx0q8rx0q8rx0q8rx0"
        } else {
            ""
        });
        stable.push_str(if is_random { rest } else { part });
    }
    stable
}

/// Replaces each random token by one and the same.
pub(super) fn with_stable_tokens(text: &str) -> String {
    let stable = "0q8Rx".repeat(9);
    let mut text = text.to_owned();
    for prefix in ["svcd_", "\"price_"] {
        let mut parts = text.split(prefix);
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
            // Names that only begin like one, as a field's, are none.
            let token = if part.len() - rest.len() == 43 {
                &stable[..43]
            } else {
                &part[..part.len() - rest.len()]
            };
            write!(whole, "{prefix}{token}{rest}").unwrap();
        }
        text = whole;
    }
    text
}

/// Replaces the random characters of each domain's proof by the same ones.
pub(super) fn with_stable_proofs(text: &str) -> String {
    let mut text = text.to_owned();
    for prefix in ["\"d-", "svc-domain="] {
        let mut parts = text.split(prefix);
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
            let is_proof = part.len() - rest.len() == 26;
            let characters = match is_proof {
                true => "3k5vqg2m7xw4t6z7b2c4f5hnjr",
                false => &part[..part.len() - rest.len()],
            };
            write!(whole, "{prefix}{characters}{rest}").unwrap();
        }
        text = whole;
    }
    text
}
