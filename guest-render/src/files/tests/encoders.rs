//! Pictures as ordinary encoders write them: `tests/corpus/fuzz/files`.

use super::super::{Recognition, clean, recognise, resize};
use super::{built, has};

macro_rules! pictures {
    ($($name:literal $kind:literal $width:literal $height:literal $profile:literal;)+) => {
        [$((
            $name,
            &include_bytes!(concat!("../../../../tests/corpus/fuzz/files/", $name))[..],
            $kind,
            ($width, $height),
            $profile,
        )),+]
    };
}

#[test]
fn metadata_of_encoders_goes_and_profiles_stay() {
    for (name, file, kind, size, has_profile) in pictures! {
        "baseline.jpg" "image/jpeg" 16 24 true;
        "progressive.jpg" "image/jpeg" 16 24 false;
        "gray.jpg" "image/jpeg" 24 16 false;
        "cmyk.jpg" "image/jpeg" 24 16 false;
        "rgb.png" "image/png" 16 24 true;
        "palette.png" "image/png" 24 16 false;
        "alpha.png" "image/png" 9 7 false;
        "animated.png" "image/png" 12 8 false;
        "animated.gif" "image/gif" 12 8 false;
        "still.gif" "image/gif" 24 16 false;
        "lossy.webp" "image/webp" 16 24 true;
        "lossless.webp" "image/webp" 24 16 false;
        "animated.webp" "image/webp" 12 8 false;
        "still.avif" "image/avif" 16 24 false;
        "animated.avif" "image/avif" 12 8 false;
        "alpha.avif" "image/avif" 24 16 false;
    } {
        assert_eq!(
            recognise(file),
            Recognition::Picture(kind.to_owned()),
            "{name}"
        );
        let cleaned = clean(file, false).unwrap_or_else(|fault| panic!("{name}: {fault:?}"));
        assert_eq!((cleaned.width, cleaned.height), size, "{name}");
        let bytes = built(file, &cleaned);
        assert!(
            !has(&bytes, b"SECRET") && !has(&bytes, b"xmpmeta"),
            "{name}"
        );
        // A PNG has its profile compressed.
        let profile = if kind == "image/png" {
            &b"iCCP"[..]
        } else {
            b"acsp"
        };
        assert_eq!(has(&bytes, profile), has_profile, "{name}");
        let again = clean(&bytes, false).unwrap();
        assert_eq!(built(&bytes, &again), bytes, "{name}: cleaned twice");
        let is_copied = !matches!(kind, "image/avif") && name != "cmyk.jpg";
        let copies = [resize(file, 8), resize(&bytes, 8)];
        for copy in &copies {
            assert_eq!(copy.is_ok(), is_copied, "{name}: {copy:?}");
        }
        assert_eq!(copies[0], copies[1], "{name}: pixels are those before");
    }
}
