//! QR codes of links, made on the server, so that the page needs no library, and works without scripts.

use std::fmt::Write as _;

use qrcodegen::{DataTooLong, QrCode, QrCodeEcc};

/// Width of the light border in modules, which readers need (ISO/IEC 18004).
const QUIET_ZONE: i32 = 4;

/// Draws a text as a QR code in SVG: dark on light in every colour scheme, because readers expect that.
///
/// # Errors
/// When the text is longer than a code holds.
pub(super) fn qr_code_svg(text: &str) -> Result<String, DataTooLong> {
    let code = QrCode::encode_text(text, QrCodeEcc::Medium)?;
    let side = code.size() + 2 * QUIET_ZONE;
    let mut path = String::new();
    for y in 0..code.size() {
        for x in (0..code.size()).filter(|x| code.get_module(*x, y)) {
            // Writing to a string does not fail.
            let _ = write!(path, "M{} {}h1v1h-1z", x + QUIET_ZONE, y + QUIET_ZONE);
        }
    }
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {side} {side}\" shape-rendering=\"crispEdges\" role=\"img\">\
         <title>The link as a QR code</title><path fill=\"#fff\" d=\"M0 0h{side}v{side}H0z\"/><path d=\"{path}\"/></svg>"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_one_drawing() {
        let short = qr_code_svg("http://localhost:8080/hello").unwrap();
        assert!(short.starts_with("<svg ") && short.ends_with("</svg>"));
        assert_eq!(short, qr_code_svg("http://localhost:8080/hello").unwrap());
        assert_ne!(short, qr_code_svg("http://localhost:8080/hellp").unwrap());
        assert!(qr_code_svg(&"x".repeat(3000)).is_err());
    }
}
