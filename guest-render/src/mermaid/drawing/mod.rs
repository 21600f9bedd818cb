//! Drawings of diagrams: a first one by merman, and the one that is served, written anew from it through an allow-list.

mod arial_widths;
mod colours;
mod css;
#[cfg(target_family = "wasm")]
mod draft;
mod frame;
mod label;
mod markup;
mod names;
// Natively there are only its tests.
#[cfg_attr(not(target_family = "wasm"), allow(dead_code))]
mod prepare;
mod safe;
#[cfg(test)]
mod tests;
mod text;

#[cfg(target_family = "wasm")]
pub(crate) use draft::draw;
