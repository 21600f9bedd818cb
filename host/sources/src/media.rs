//! Files that are shared as they are, beside a page that shows them: pictures, sound, video, and papers.

/// How a page shows a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MediaKind {
    /// A picture, in the page.
    Picture,
    /// Sound, with controls.
    Sound,
    /// A video, with controls.
    Video,
    /// A file that is downloaded.
    Paper,
}

/// Extensions of such files, in lower case.
pub const MEDIA_EXTENSIONS: [(&str, MediaKind); 10] = [
    ("png", MediaKind::Picture),
    ("jpg", MediaKind::Picture),
    ("jpeg", MediaKind::Picture),
    ("gif", MediaKind::Picture),
    ("webp", MediaKind::Picture),
    ("avif", MediaKind::Picture),
    ("mp3", MediaKind::Sound),
    ("mp4", MediaKind::Video),
    ("webm", MediaKind::Video),
    ("pdf", MediaKind::Paper),
];

/// Returns the extension, in lower case, and the kind of a file by its name; none for a file that is shared as a text.
#[must_use]
pub fn media_by_name(file: &str) -> Option<(&'static str, MediaKind)> {
    let (_, extension) = file.rsplit_once('.')?;
    let mut all = MEDIA_EXTENSIONS.into_iter();
    all.find(|(known, _)| known.eq_ignore_ascii_case(extension))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ContentType;

    #[test]
    fn the_name_says_how_a_file_is_shown() {
        for (file, expected) in [
            ("photo.png", Some(("png", MediaKind::Picture))),
            ("PHOTO.JPG", Some(("jpg", MediaKind::Picture))),
            ("a.b.webm", Some(("webm", MediaKind::Video))),
            (".mp3", Some(("mp3", MediaKind::Sound))),
            ("paper.pdf", Some(("pdf", MediaKind::Paper))),
            ("png", None),
            ("a.svg", None),
            ("", None),
        ] {
            assert_eq!(media_by_name(file), expected, "{file}");
        }
        for (extension, _) in MEDIA_EXTENSIONS {
            assert_eq!(ContentType::from_extension(extension), None, "{extension}");
        }
    }
}
