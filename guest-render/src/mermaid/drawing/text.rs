//! Widths of labels, by the advances of the font that the page asks for.

use super::arial_widths::{GlyphAdvanceRun, RUNS};

/// Units of the advances for a font's size.
const UNITS_PER_EM: f64 = 2048.0;

/// Advance of a letter that the font lacks: most readers have it in another font.
const UNKNOWN_ADVANCE: u16 = 1366;

/// Advance of an ideograph, a syllable of Hangul, or an emoji: as wide as the font is high.
const WIDE_ADVANCE: u16 = 2048;

/// Returns the width of a line in a font of `font_size` CSS pixels, in CSS pixels: as a browser with Arial measures it, without
/// kerning.
pub(super) fn line_width(text: &str, is_bold: bool, font_size: f64) -> f64 {
    let units: u32 = text
        .chars()
        .map(|char| u32::from(glyph_advance(char, is_bold)))
        .sum();
    f64::from(units) / UNITS_PER_EM * font_size
}

/// Whether browsers show a font weight as bold.
pub(super) fn is_bold(weight: &str) -> bool {
    match weight.trim() {
        "bold" | "bolder" => true,
        weight => weight.parse::<f64>().is_ok_and(|weight| weight >= 600.0),
    }
}

fn glyph_advance(char: char, is_bold: bool) -> u16 {
    let code = u32::from(char);
    let find = |run: &GlyphAdvanceRun| {
        let at = usize::try_from(code.checked_sub(run.first)?).ok()?;
        let advances = if is_bold { run.bold } else { run.regular };
        advances.get(at).copied().filter(|advance| *advance > 0)
    };
    RUNS.iter().find_map(find).unwrap_or(match code {
        // Combining marks, joiners and variation selectors.
        0x0300..=0x036f | 0x200b..=0x200f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f => 0,
        0x1100..=0x11ff | 0x2600..=0x27bf | 0x2e80..=0xd7ff | 0xf900..=0xfaff => WIDE_ADVANCE,
        0xfe30..=0xfe4f | 0xff00..=0xff60 | 0x1_f000..=0x3_ffff => WIDE_ADVANCE,
        _ => UNKNOWN_ADVANCE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds to a hundredth of a pixel, at 16 pixels.
    fn measured(text: &str, is_bold: bool) -> f64 {
        (line_width(text, is_bold, 16.0) * 100.0).round() / 100.0
    }

    #[test]
    fn widths_are_those_that_chromium_has_for_arial() {
        for (text, regular, bold) in [
            ("", 0.0, 0.0),
            ("Hello, world", 83.59, 90.67),
            ("Größe", 45.34, 47.12),
            ("Дом", 30.73, 33.01),
            ("→", 16.0, 16.0),
            ("漢字", 32.0, 32.0),
            ("e\u{301}", 8.9, 8.9),
        ] {
            assert_eq!(measured(text, false), regular, "{text}");
            assert_eq!(measured(text, true), bold, "{text}");
        }
        for (weight, expected) in [
            ("600", true),
            (" bolder", true),
            ("500", false),
            ("normal", false),
        ] {
            assert_eq!(is_bold(weight), expected, "{weight}");
        }
    }
}
