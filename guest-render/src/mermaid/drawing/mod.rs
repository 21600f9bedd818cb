//! Drawings of diagrams: a draft by merman, and the served drawing, rewritten from it through an allow-list.

mod arial_widths;
mod colours;
mod css;
#[cfg(target_family = "wasm")]
mod draft;
mod frame;
mod label;
mod markup;
mod names;
// Native builds have only its tests.
#[cfg_attr(not(target_family = "wasm"), allow(dead_code))]
mod prepare;
mod safe;
#[cfg(test)]
mod tests;
mod text;

#[cfg(target_family = "wasm")]
pub(crate) use draft::draw;
