//! Parts of a Content-Security-Policy (CSP3).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use svc_base::digest::Digest;

/// Returns the hash source of an inline script or style, without its quotes.
pub fn hash_source(text: &str) -> String {
    let digest = STANDARD.encode(Digest::of(text.as_bytes()).as_bytes());
    format!("sha256-{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_text_has_its_known_digest() {
        let empty = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        assert_eq!(hash_source(""), empty);
    }
}
