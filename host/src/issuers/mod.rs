//! Issuers of tokens: the metadata and keys of an OpenID Connect issuer, and the verification of its tokens.
//!
//! The decisions are pure: [`Metadata`], [`Keys`] and [`Token`] parse and compare. [`Issuer`] fetches, caches, and refreshes within
//! bounds.

mod cryptography;
mod issuer;
mod keys;
mod metadata;
mod signing;
mod tokens;

pub use crate::config::{AddressError, IssuerAddress};
pub use issuer::{CALL_TIMEOUT, Issuer, IssuerError};
pub use keys::Keys;
pub use metadata::{Metadata, MetadataError};
pub use signing::{SigningError, SigningKey};
pub use tokens::{AccessClaims, Audience, IdClaims, Profile, Token, TokenError};

#[cfg(test)]
mod issuer_tests;
#[cfg(test)]
mod token_tests;
