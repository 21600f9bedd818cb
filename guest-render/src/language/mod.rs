//! Detection of a text's language, where it is certain: by its script, else by its most common words.
//!
//! Trigram detectors compare every text with the profiles of dozens of languages, which takes more work than rendering a short
//! page. The language is used for a screen reader's voice, and a browser's hyphens and quotes. A wrong language is worse than
//! English for all of these, so an uncertain result counts as none.

mod common_words;

use common_words::{LANGUAGES, WORDS};

/// Number of letters that are examined.
const MAX_LETTERS: usize = 1000;
/// Number of words that are looked up.
const MAX_WORDS: usize = 120;
/// Length limit of common words, in bytes.
const MAX_WORD_BYTES: usize = 16;

/// Script of a letter, as far as it distinguishes languages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WritingScript {
    Latin,
    Arabic,
    Cyrillic,
    Devanagari,
    Greek,
    Han,
    Hangul,
    Hebrew,
    Kana,
    Thai,
    Armenian,
    Georgian,
    Bengali,
    Tamil,
}

impl WritingScript {
    /// Number of scripts.
    const SCRIPT_COUNT: usize = 14;

    fn of(char: char) -> Option<Self> {
        Some(match char {
            'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Self::Latin,
            '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Self::Greek,
            '\u{400}'..='\u{52f}' => Self::Cyrillic,
            '\u{531}'..='\u{587}' => Self::Armenian,
            '\u{5d0}'..='\u{5ea}' => Self::Hebrew,
            '\u{620}'..='\u{6d3}' | '\u{750}'..='\u{77f}' => Self::Arabic,
            '\u{904}'..='\u{939}' => Self::Devanagari,
            '\u{985}'..='\u{9b9}' => Self::Bengali,
            '\u{b85}'..='\u{bb9}' => Self::Tamil,
            '\u{e01}'..='\u{e3a}' | '\u{e40}'..='\u{e4e}' => Self::Thai,
            '\u{10a0}'..='\u{10ff}' => Self::Georgian,
            '\u{3041}'..='\u{30fa}' => Self::Kana,
            '\u{3400}'..='\u{9fff}' => Self::Han,
            '\u{ac00}'..='\u{d7a3}' => Self::Hangul,
            _ => return None,
        })
    }
}

/// Detects the language of a text, as a tag; `None` if it is uncertain.
pub(crate) fn detect(text: &str) -> Option<&'static str> {
    let mut counts = [0_usize; WritingScript::SCRIPT_COUNT];
    let mut total = 0;
    for script in text.chars().filter_map(WritingScript::of).take(MAX_LETTERS) {
        counts[script as usize] += 1;
        total += 1;
    }
    let of = |script: WritingScript| counts[script as usize];
    // A page about a foreign word is not in that word's language.
    let prevails = |count: usize| count >= 4 && count * 2 > total;
    // Characters that stand for more than one letter weigh more.
    if prevails(3 * (of(WritingScript::Kana) + of(WritingScript::Han)))
        && 3 * (of(WritingScript::Kana) + of(WritingScript::Han)) > of(WritingScript::Latin)
    {
        return Some(match (of(WritingScript::Kana), of(WritingScript::Han)) {
            (kana, han) if kana * 10 >= han => "ja",
            _ => "zh",
        });
    }
    if prevails(2 * of(WritingScript::Hangul)) {
        return Some("ko");
    }
    for (script, detected) in [
        (WritingScript::Greek, "el"),
        (WritingScript::Hebrew, "he"),
        (WritingScript::Thai, "th"),
        (WritingScript::Armenian, "hy"),
        (WritingScript::Georgian, "ka"),
        (WritingScript::Bengali, "bn"),
        (WritingScript::Tamil, "ta"),
    ] {
        if prevails(of(script)) {
            return Some(detected);
        }
    }
    if prevails(of(WritingScript::Arabic)) {
        return Some(detect_arabic(text));
    }
    if prevails(of(WritingScript::Cyrillic)) {
        return detect_cyrillic(text);
    }
    if prevails(of(WritingScript::Devanagari)) {
        return detect_devanagari(text);
    }
    if prevails(of(WritingScript::Latin)) {
        detect_latin(text)
    } else {
        None
    }
}

/// Whether at least a hundredth of a text's letters are among `letters`.
fn has_letters(text: &str, letters: &[char]) -> bool {
    let text = || text.chars().take(MAX_LETTERS);
    text().filter(|char| letters.contains(char)).count() * 100 > text().count()
}

fn detect_arabic(text: &str) -> &'static str {
    if has_letters(text, &['ٹ', 'ڈ', 'ڑ', 'ے', 'ں']) {
        "ur"
    } else if has_letters(text, &['پ', 'چ', 'ژ', 'گ', 'ک', 'ی']) {
        "fa"
    } else {
        "ar"
    }
}

fn detect_cyrillic(text: &str) -> Option<&'static str> {
    if has_letters(text, &['і', 'ї', 'є', 'ґ']) {
        return Some(if has_letters(text, &['ў', 'ы']) {
            "be"
        } else {
            "uk"
        });
    }
    if has_letters(text, &['ј', 'љ', 'њ', 'ћ', 'ђ']) {
        return Some("sr");
    }
    if has_letters(text, &['ы', 'э', 'ё']) {
        // Other languages in this script have letters that Russian lacks.
        let is_other = has_letters(text, &['ң', 'ө', 'ү', 'қ', 'ғ', 'һ', 'ә']);
        return (!is_other).then_some("ru");
    }
    has_letters(text, &['ъ', 'щ']).then_some("bg")
}

fn detect_devanagari(text: &str) -> Option<&'static str> {
    let count = |word: &str| text.matches(word).count();
    let hindi = count("है") + count("और") + count("में") + count("के ");
    let marathi = count("आहे") + count("आणि") + count("ळ");
    match hindi.cmp(&marathi) {
        std::cmp::Ordering::Greater => Some("hi"),
        std::cmp::Ordering::Less => Some("mr"),
        std::cmp::Ordering::Equal => None,
    }
}

/// Detects a language by common words: the one with most of them, if no other is near.
fn detect_latin(text: &str) -> Option<&'static str> {
    let mut hits = [0_u32; LANGUAGES.len()];
    let (mut seen, mut distinct) = (0_u32, Vec::new());
    let words = text.split(|char: char| !char.is_alphabetic() && char != '\'');
    let mut lower = String::new();
    for word in words.filter(|word| !word.is_empty()).take(MAX_WORDS) {
        seen += 1;
        if word.len() > MAX_WORD_BYTES {
            continue;
        }
        lower.clear();
        lower.extend(word.chars().flat_map(char::to_lowercase));
        let Ok(at) = WORDS.binary_search_by(|(known, _)| (*known).cmp(lower.as_str())) else {
            continue;
        };
        if !distinct.contains(&at) {
            distinct.push(at);
        }
        for (language, hits) in hits.iter_mut().enumerate() {
            *hits += WORDS[at].1 >> language & 1;
        }
    }
    let best =
        (0..hits.len()).max_by_key(|language| (hits[*language], LANGUAGES.len() - language))?;
    // Words that only the best of two languages has count against the second.
    let own_beside = |other: usize| {
        let own = |at: &&usize| WORDS[**at].1 >> best & 1 == 1 && WORDS[**at].1 >> other & 1 == 0;
        distinct.iter().filter(own).count()
    };
    let of_best = distinct
        .iter()
        .filter(|at| WORDS[**at].1 >> best & 1 == 1)
        .count();
    let is_clear = (0..hits.len())
        .filter(|other| *other != best)
        .all(|other| hits[best] * 4 >= hits[other] * 5 && own_beside(other) >= 2);
    let is_much = of_best >= 3 && hits[best] * 6 >= seen;
    (is_clear && is_much).then_some(LANGUAGES[best])
}

#[cfg(test)]
mod tests;
