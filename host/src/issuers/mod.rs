//! Issuers of tokens: what an OpenID Connect issuer says of itself, its keys, and whether a token is one of its tokens.
//!
//! Everything that decides is pure: [`Metadata`], [`Keys`] and [`Token`] read what came and compare it with what was expected. [`Issuer`]
//! fetches, remembers, and asks again within bounds.

mod cryptography;
mod issuer;
mod keys;
mod metadata;
mod signing;
mod tokens;

pub use crate::config::{AddressError, IssuerAddress};
pub use issuer::{CALL_TIME, Issuer, IssuerError};
pub use keys::Keys;
pub use metadata::{Metadata, MetadataError};
pub use signing::{SigningError, SigningKey};
pub use tokens::{AccessClaims, Audience, IdClaims, Profile, Token, TokenError};

#[cfg(test)]
mod issuer_tests;
#[cfg(test)]
mod token_tests;
