//! Colours of a drawing, for light and dark pages.
//!
//! A drawing is made once. Each of its colours becomes a custom property with two values: the drawn one, and a counterpart for
//! the other scheme. The counterpart keeps the hue and mirrors the luminance so that the contrast of any two colours stays the
//! same: contrast is the quotient of `Y + 0.05` (WCAG 2), and the mirror is `Y + 0.05 → MIRROR_PRODUCT / (Y + 0.05)`. Saturated colours
//! become a little brighter than that ([`MAX_BRIGHTENING`]). So text that is readable in one scheme is readable in the other, also with an
//! author's own colours.

use std::fmt::Write as _;

use csscolorparser::Color;

/// Product of `Y + 0.05` of a colour and of its counterpart: white becomes the background of dark pages (#1d2026).
const MIRROR_PRODUCT: f64 = 1.05 * 0.0645;

/// Limit of how much brighter than its mirror a dark counterpart may be, in luminance: a saturated colour would lose its hue
/// otherwise. White stays readable on all of them.
const MAX_BRIGHTENING: f64 = 0.1;

/// Luminance from which counterparts are bright enough.
const BRIGHT_LUMINANCE: f64 = 0.2;

/// Blend mode of layers that darken what is below them.
pub(super) const BLEND_MODE_VARIABLE: &str = "var(--blend)";

/// Luminance that WCAG adds for reflected light.
const REFLECTED_LUMINANCE: f64 = 0.05;

/// Colours of one drawing, each once, in the order of their first use.
#[derive(Default)]
pub(super) struct Palette {
    colours: Vec<[u8; 4]>,
}

impl Palette {
    /// Returns the reference to a colour's property; `None` for a value that is no colour, or has no counterpart (`none`,
    /// `transparent`, `currentColor`).
    pub(super) fn reference(&mut self, value: &str) -> Option<String> {
        if value.eq_ignore_ascii_case("transparent") {
            return None;
        }
        // The parser accepts hexadecimal digits without `#`; CSS does not.
        if value.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let colour = csscolorparser::parse(value).ok()?.to_rgba8();
        let at = self.colours.iter().position(|known| *known == colour);
        let at = at.unwrap_or_else(|| {
            self.colours.push(colour);
            self.colours.len() - 1
        });
        Some(format!("var(--c{at})"))
    }

    /// Writes the rules that set the properties in both schemes; paper is light.
    ///
    /// A drawing that was made for dark pages keeps its own colours there.
    pub(super) fn write(&self, out: &mut String, root: &str, is_dark: bool) {
        if self.colours.is_empty() {
            return;
        }
        let mut declare = |selector: &str, is_mirrored: bool, end: &str| {
            out.push_str(selector);
            let _ = write!(out, "#{root}{{");
            for (at, colour) in self.colours.iter().enumerate() {
                let colour = if is_mirrored {
                    mirror_colour(*colour)
                } else {
                    *colour
                };
                let _ = write!(out, "--c{at}:{};", hex(colour));
            }
            out.push_str(if is_mirrored {
                "--blend:screen"
            } else {
                "--blend:multiply"
            });
            out.push_str(end);
        };
        declare("", is_dark, "}");
        declare(
            "@media screen and (prefers-color-scheme:dark){",
            !is_dark,
            "}}",
        );
    }
}

/// Returns the relative luminance of a colour, from 0 to 1; `None` for a value that is no colour.
pub(super) fn luminance_of(value: &str) -> Option<f64> {
    let colour = csscolorparser::parse(value).ok()?;
    Some(luminance(&colour))
}

fn luminance(colour: &Color) -> f64 {
    let [red, green, blue, _] = colour.to_linear_rgba().map(f64::from);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// Returns the counterpart of a colour: same hue and transparency, mirrored luminance.
fn mirror_colour([red, green, blue, alpha]: [u8; 4]) -> [u8; 4] {
    let colour = Color::from_rgba8(red, green, blue, alpha);
    let [_, a, b, _] = colour.to_oklaba();
    let mirror = MIRROR_PRODUCT / (luminance(&colour) + REFLECTED_LUMINANCE) - REFLECTED_LUMINANCE;
    let saturation = ((f64::from(a.hypot(b)) - 0.06) / 0.1).clamp(0.0, 1.0);
    let lift = MAX_BRIGHTENING * saturation * (1.0 - mirror / BRIGHT_LUMINANCE).max(0.0);
    let wanted = (mirror + lift).clamp(0.0, 1.0);
    // Luminance grows with lightness; colours outside of the gamut get less chroma.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..12 {
        let middle = (low + high) / 2.0;
        if luminance(&within_gamut(middle, a, b)) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    let [red, green, blue, _] = within_gamut((low + high) / 2.0, a, b).to_rgba8();
    [red, green, blue, alpha]
}

/// Returns the colour of a lightness and hue, with as much of the chroma as a screen can show.
fn within_gamut(lightness: f32, a: f32, b: f32) -> Color {
    let mut chroma = 1.0;
    loop {
        let colour = Color::from_oklaba(lightness, a * chroma, b * chroma, 1.0);
        let fits = |part: f32| (-0.001..=1.001).contains(&part);
        if chroma < 0.05 || (fits(colour.r) && fits(colour.g) && fits(colour.b)) {
            return colour.clamp();
        }
        chroma -= 0.05;
    }
}

fn hex([red, green, blue, alpha]: [u8; 4]) -> String {
    let mut text = format!("#{red:02x}{green:02x}{blue:02x}");
    if alpha < 255 {
        let _ = write!(text, "{alpha:02x}");
    }
    text
}
