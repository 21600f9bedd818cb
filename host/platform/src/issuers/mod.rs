//! Issuers of tokens: the metadata and keys of an OpenID Connect issuer, and the verification of its tokens.
//!
//! The decisions are pure: [`IssuerMetadata`], [`IssuerKeySet`] and [`UnverifiedToken`] parse and compare. [`Issuer`] fetches, caches, and refreshes within
//! bounds.

mod cryptography;
mod issuer;
mod keys;
mod metadata;
mod signing;
mod tokens;

pub use crate::config::{IssuerAddress, IssuerAddressError};
pub use issuer::{CALL_TIMEOUT, Issuer, IssuerError};
pub use keys::IssuerKeySet;
pub use metadata::{DiscoveryDocumentError, IssuerMetadata};
pub use signing::{SigningError, SigningKey};
pub use tokens::{
    AccessTokenClaims, AudienceClaim, IdTokenClaims, ProfileClaims, TokenError, UnverifiedToken,
};

#[cfg(test)]
mod issuer_tests;
#[cfg(test)]
mod token_tests;
