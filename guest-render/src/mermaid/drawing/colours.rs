//! The colours of a drawing, in light and in dark.
//!
//! A drawing is made once. Each colour in it becomes a custom property of the drawing, which has two values: the one
//! that was drawn, and its counterpart for the other scheme. The counterpart keeps the hue and mirrors the luminance, in such
//! a way that the contrast of any two colours stays what it is: contrast is the quotient of `Y + 0.05` (WCAG 2), and the mirror
//! is `Y + 0.05 → MIRROR / (Y + 0.05)`. Saturated colours become a little brighter than that ([`LIFT`]). So what an author
//! could read in one scheme can be read in the other, also with colours of their own.

use std::fmt::Write as _;

use csscolorparser::Color;

/// Product of `Y + 0.05` of a colour and of its counterpart: white becomes the dark pages' ground (#1d2026).
const MIRROR_PRODUCT: f64 = 1.05 * 0.0645;

/// How much brighter than its mirror a dark counterpart may be, in luminance: a saturated colour is seen by its hue, and
/// would have none left. White is still read on what this makes of any colour.
const LIFT: f64 = 0.1;

/// Counterparts of this luminance and more are bright enough as they are.
const BRIGHT: f64 = 0.2;

/// How layers of a drawing blend that darken what is below them.
pub(super) const BLEND: &str = "var(--blend)";

/// Luminance that WCAG adds for the light that a screen reflects.
const FLARE: f64 = 0.05;

/// The colours of one drawing, each once, in the order in which they are met.
#[derive(Default)]
pub(super) struct Palette {
    colours: Vec<[u8; 4]>,
}

impl Palette {
    /// Returns a colour's stand-in in the drawing: a reference to its property. `None` for what is no colour, or has no
    /// counterpart (`none`, `transparent`, `currentColor`).
    pub(super) fn reference(&mut self, value: &str) -> Option<String> {
        if value.eq_ignore_ascii_case("transparent") {
            return None;
        }
        // The parser takes hexadecimal digits without their mark, which CSS does not.
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

    /// The rules that give the properties their values, in both schemes; paper is light.
    ///
    /// A drawing that was made for the dark shows its own colours there.
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

/// The relative luminance of a colour, from 0 to 1; `None` for what is no colour.
pub(super) fn luminance_of(value: &str) -> Option<f64> {
    let colour = csscolorparser::parse(value).ok()?;
    Some(luminance(&colour))
}

fn luminance(colour: &Color) -> f64 {
    let [red, green, blue, _] = colour.to_linear_rgba().map(f64::from);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// The counterpart of a colour: of the same hue and transparency, and of the mirrored luminance.
fn mirror_colour([red, green, blue, alpha]: [u8; 4]) -> [u8; 4] {
    let colour = Color::from_rgba8(red, green, blue, alpha);
    let [_, a, b, _] = colour.to_oklaba();
    let mirror = MIRROR_PRODUCT / (luminance(&colour) + FLARE) - FLARE;
    let saturation = ((f64::from(a.hypot(b)) - 0.06) / 0.1).clamp(0.0, 1.0);
    let lift = LIFT * saturation * (1.0 - mirror / BRIGHT).max(0.0);
    let wanted = (mirror + lift).clamp(0.0, 1.0);
    // Luminance grows with lightness; what is outside of the gamut is brought in by less chroma.
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

/// The colour of a lightness and hue, with as much of the chroma as a screen can show.
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
