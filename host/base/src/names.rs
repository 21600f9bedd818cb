//! Names: checks of slugs, action names and project names, and candidates for a slug that is taken.

/// Length limit of a slug, and of a label of a host name (RFC 1035, section 2.3.4), in characters.
pub const SLUG_LENGTH: usize = 63;
/// Length limit of an action's name, in characters.
const ACTION_NAME_LENGTH: usize = 64;
/// Length limit of a project's name, in characters.
pub const PROJECT_NAME_LENGTH: usize = 100;
/// Length of the random suffix of a slug whose numbered candidates are taken, in characters.
pub const RANDOM_SUFFIX_LENGTH: usize = 6;
/// Length limit of a price's key, in characters.
const PRICE_KEY_LENGTH: usize = 64;
/// Prefix of the ids of prices, which no key has.
const PRICE_ID_PREFIX: &str = "price_";
/// Highest number of a numbered candidate; candidates with random suffixes come after it.
const LAST_SLUG_NUMBER: u32 = 9;

/// Whether `text` can be a slug: `^[a-z0-9]([a-z0-9\-]*[a-z0-9])?$`, 63 characters at most.
pub fn is_slug(text: &str) -> bool {
    let bytes = text.as_bytes();
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bytes.len() <= SLUG_LENGTH
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|b| alphanumeric(b) || *b == b'-')
}

/// Whether `text` has the form of a UUID, as ids have: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12.
pub fn is_uuid(text: &str) -> bool {
    let groups = text.split('-').map(str::len);
    text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit()) && groups.eq([8, 4, 4, 4, 12])
}

/// Whether `name` can be an action's: `^[a-z][a-z0-9_]{0,63}$`.
pub fn is_action_name(name: &str) -> bool {
    name.len() <= ACTION_NAME_LENGTH && is_lower_case_name(name, b"_")
}

/// Whether `key` can be a price's: `^[a-z][a-z0-9_-]{0,63}$`, not beginning as ids of prices do.
pub fn is_price_key(key: &str) -> bool {
    key.len() <= PRICE_KEY_LENGTH && !is_price_id(key) && is_lower_case_name(key, b"_-")
}

/// Whether a text is a small letter, followed by small letters, digits and bytes of `marks`.
fn is_lower_case_name(text: &str, marks: &[u8]) -> bool {
    let may_follow = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || marks.contains(&b);
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.bytes().all(may_follow)
}

/// Whether a text that names a price is an id, and no key.
pub fn is_price_id(text: &str) -> bool {
    text.starts_with(PRICE_ID_PREFIX)
}

/// Whether `name` can be a project's: not blank, and 100 characters at most.
pub fn is_project_name(name: &str) -> bool {
    !name.trim().is_empty() && name.chars().count() <= PROJECT_NAME_LENGTH
}

/// Returns `name` with a suffix; the name is cut so that the whole is a slug.
pub fn append_suffix_within_limit(name: &str, suffix: &str) -> String {
    let room = SLUG_LENGTH - suffix.len() - 1;
    let stem = name
        .get(..room.min(name.len()))
        .unwrap_or(name)
        .trim_end_matches('-');
    format!("{stem}-{suffix}")
}

/// Returns the numbered candidates for a slug that is taken: `name-2` to `name-9`.
pub fn numbered_slugs(name: &str) -> impl Iterator<Item = String> {
    (2..=LAST_SLUG_NUMBER).map(move |number| append_suffix_within_limit(name, &number.to_string()))
}

/// Makes a slug of a text: its ASCII letters and digits in lower case, with one hyphen for everything between them.
pub fn slugify(text: &str) -> String {
    let mut slug = String::with_capacity(text.len().min(SLUG_LENGTH));
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(SLUG_LENGTH);
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs() {
        let long = "a".repeat(63);
        for good in ["a", "7", "a-b", "a--b", "x1", &long] {
            assert!(is_slug(good), "{good}");
        }
        let longer = "a".repeat(64);
        for bad in ["", "-a", "a-", "A", "a_b", "a.b", "ä", "a b", &longer] {
            assert!(!is_slug(bad), "{bad}");
        }
    }

    #[test]
    fn uuids() {
        assert!(is_uuid("0198c0de-0000-7000-8000-00000000000f"));
        assert!(is_uuid("00000000-0000-0000-0000-000000000000"));
        for other in [
            "0198c0de00007000800000000000000f",
            "0198c0de-0000-7000-8000-00000000000g",
            "0198c0de-0000-7000-8000-00000000000f-2",
            "0198c0de-0000-7000-80000-0000000000f",
            "notes",
        ] {
            assert!(!is_uuid(other), "{other}");
        }
    }

    #[test]
    fn names_of_actions() {
        let longest = "a".repeat(64);
        for good in ["a", "add_note", "a1", "a_", &longest] {
            assert!(is_action_name(good), "{good}");
        }
        let longer = "a".repeat(65);
        for bad in ["", "A", "1a", "_a", "a-b", "a.b", "ä", "a b", &longer] {
            assert!(!is_action_name(bad), "{bad}");
        }
    }

    #[test]
    fn keys_of_prices() {
        let longest = "a".repeat(64);
        for good in ["a", "pro", "pro-2026", "a_", "price", "prices_", &longest] {
            assert!(is_price_key(good), "{good}");
        }
        let longer = "a".repeat(65);
        for bad in [
            "", "A", "1a", "_a", "-a", "a.b", "ä", "a b", "a\n", "price_", "price_a", &longer,
        ] {
            assert!(!is_price_key(bad), "{bad}");
        }
        assert!(is_price_id("price_2Wn3bQmZ0hXk81TtVd5sYc4L"));
        assert!(!is_price_id("pro"));
    }

    #[test]
    fn names_of_projects() {
        let longest = "ä".repeat(100);
        for good in ["a", "Web shop", "../x", &longest] {
            assert!(is_project_name(good), "{good}");
        }
        let longer = "ä".repeat(101);
        for bad in ["", " ", "\n", &longer] {
            assert!(!is_project_name(bad), "{bad}");
        }
    }

    #[test]
    fn suffixes_fit() {
        assert_eq!(append_suffix_within_limit("notes", "2"), "notes-2");
        let long = append_suffix_within_limit(&"a".repeat(63), "23");
        assert_eq!(long.len(), 63);
        assert!(is_slug(&long));
        assert!(is_slug(&append_suffix_within_limit(
            &format!("{}-b", "a".repeat(59)),
            "23"
        )));
        let tried: Vec<String> = numbered_slugs("notes").collect();
        assert_eq!(tried.len(), 8);
        assert_eq!(tried[7], "notes-9");
    }
}
