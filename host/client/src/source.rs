//! Sources of pages: files of the user, or standard input.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};

use super::error::{CliFailure, FailureExitCode, Result};
use svc_base::names::slugify;
use svc_sources::ContentType;
use svc_sources::files;

/// Name that stands for standard input.
pub(super) const STDIN: &str = "-";
/// The largest file that is read, in bytes: far above the server's limit.
pub(super) const MAX_BYTES: u64 = 64 << 20;
/// The longest title, in characters.
const MAX_TITLE: usize = 200;

/// A source of a page to publish.
#[derive(Clone, Debug)]
pub(super) struct SourceToPublish {
    /// Path of the file.
    pub(super) path: PathBuf,
    /// Type of the source.
    pub(super) content_type: ContentType,
    /// Text to publish.
    pub(super) content: String,
    /// Title by the file's name, if the content has none of its own.
    pub(super) title: Option<String>,
}

impl SourceToPublish {
    /// Reads a file, or standard input for `-`. The type is `wanted`, else by the name.
    ///
    /// # Errors
    /// When it cannot be read, is no text, or is far too large.
    pub(super) fn read(path: &Path, wanted: Option<ContentType>) -> Result<Self> {
        Self::from_bytes(path, &read_bytes(path)?, wanted)
    }

    /// Builds a source from the bytes of a file.
    ///
    /// # Errors
    /// When they are not UTF-8.
    pub(super) fn from_bytes(
        path: &Path,
        bytes: &[u8],
        wanted: Option<ContentType>,
    ) -> Result<Self> {
        let text = files::decode_text(bytes);
        let text = text.map_err(|error| no_text(path, bytes, &error.to_string()))?;
        let (name, wanted) = match path.as_os_str() == STDIN {
            // Standard input is most often Markdown.
            true => (String::new(), wanted.or(Some(ContentType::Markdown))),
            false => (file_name(path), wanted),
        };
        let (content_type, content) = files::source_from_file(&name, wanted, text);
        // HTML and Markdown have titles of their own; code in a block, data and drawings do not.
        let own = content_type == ContentType::Html
            || (content_type == ContentType::Markdown && content == text);
        Ok(Self {
            path: path.to_owned(),
            content_type,
            content,
            title: (!own && !name.is_empty()).then(|| name.chars().take(MAX_TITLE).collect()),
        })
    }

    /// Slug by the file's name; `None` if no character of it fits.
    pub(super) fn slug(&self) -> Option<String> {
        slug_of(&self.path)
    }
}

/// Slug by a file's name without its extension.
pub(super) fn slug_of(path: &Path) -> Option<String> {
    let slug = slugify(path.file_stem()?.to_str()?);
    (!slug.is_empty()).then_some(slug)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Reads the bytes of a file, or of standard input for `-`. A link is not followed: somebody else may have made it, and a pattern such
/// as `docs/*.md` names it with the rest.
///
/// # Errors
/// When it cannot be read, is no regular file, or is far too large.
pub(super) fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    if path.as_os_str() == STDIN {
        return read_bounded(std::io::stdin().lock(), path);
    }
    let (file, bytes) = open_regular(path)?;
    if bytes > MAX_BYTES {
        return Err(too_large(path, bytes));
    }
    read_bounded(file, path)
}

/// Opens a file; returns its length, too. A link is not followed.
///
/// # Errors
/// When it cannot be read, or is no regular file.
pub(super) fn open_regular(path: &Path) -> Result<(File, u64)> {
    let failed = |error: std::io::Error| CliFailure::file_system("Reading", path, &error);
    // Checked before opening, since opening a device may have effects.
    check_regular(path, &std::fs::symlink_metadata(path).map_err(failed)?)?;
    // A link that has come in between is not followed, and a named pipe does not block.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    let file = File::from(opened.map_err(|error| failed(error.into()))?);
    let found = file.metadata().map_err(failed)?;
    check_regular(path, &found)?;
    Ok((file, found.len()))
}

/// Checks that a path that the user has named is a regular file.
fn check_regular(path: &Path, found: &Metadata) -> Result<()> {
    let Some(kind) = irregular_kind(found.mode()) else {
        return Ok(());
    };
    let advice = if found.is_dir() {
        "name the files in it. `svc apply` publishes a whole folder.".to_owned()
    } else if found.is_symlink() {
        // A relative target begins at the link's folder.
        let target = path.with_file_name(std::fs::read_link(path).unwrap_or_default());
        format!(
            "links are not followed. Name the file that it leads to, {}, if you mean that one. `-` reads standard input.",
            target.display()
        )
    } else {
        "only regular files are read. `-` reads standard input.".to_owned()
    };
    Err(CliFailure::new(
        FailureExitCode::Failed,
        "Not a regular file",
        format!("{} is {kind}: {advice}", path.display()),
    ))
}

/// Describes what a file is by its mode; `None` for a regular file.
pub(super) fn irregular_kind(mode: u32) -> Option<&'static str> {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => None,
        FileType::Directory => Some("a directory"),
        FileType::Symlink => Some("a symbolic link"),
        FileType::Fifo => Some("a named pipe"),
        FileType::Socket => Some("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("a device"),
        FileType::Unknown => Some("of an unknown kind"),
    }
}

/// Reads a text file, or standard input for `-`.
///
/// # Errors
/// When it cannot be read, is no text, or is far too large.
pub(super) fn read_text(path: &Path) -> Result<String> {
    parse_utf8(read_bytes(path)?, path)
}

/// Converts the bytes of a file to text.
///
/// # Errors
/// When they are not UTF-8.
pub(super) fn parse_utf8(bytes: Vec<u8>, path: &Path) -> Result<String> {
    let text = String::from_utf8(bytes);
    text.map_err(|error| no_text(path, error.as_bytes(), "This is no text in UTF-8."))
}

/// Failure of bytes that are no text, with the place of the first that is none.
fn no_text(path: &Path, bytes: &[u8], detail: &str) -> CliFailure {
    if path.as_os_str() == STDIN {
        return CliFailure::local(format!("Standard input: {detail}"));
    }
    let valid = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    let null = bytes[..valid].iter().position(|byte| *byte == 0);
    let before = String::from_utf8_lossy(&bytes[..null.unwrap_or(valid)]);
    CliFailure::in_text("Not a text", detail, (path, &before), before.len())
}

fn read_bounded(from: impl std::io::Read, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = from.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    let read = read.map_err(|error| CliFailure::file_system("Reading", path, &error))?;
    match u64::try_from(read) {
        Ok(read) if read <= MAX_BYTES => Ok(bytes),
        _ => Err(too_large(path, MAX_BYTES + 1)),
    }
}

/// Failure of a file that is too large for any server.
pub(super) fn too_large(path: &Path, bytes: u64) -> CliFailure {
    CliFailure::local(format!(
        "{} has {} MB or more, and a server takes about one. Nothing was sent.",
        path.display(),
        bytes / 1_000_000
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_make_slugs() {
        for (file, slug) in [
            ("a/Guest Book.html", Some("guest-book")),
            ("notes.v2.md", Some("notes-v2")),
            ("_x_.md", Some("x")),
            ("日本.md", None),
            ("-", None),
        ] {
            assert_eq!(slug_of(Path::new(file)).as_deref(), slug, "{file}");
        }
        let long = format!("{}.md", "a-".repeat(60));
        assert!(svc_base::names::is_slug(
            &slug_of(Path::new(&long)).unwrap()
        ));
    }

    #[test]
    fn what_has_no_title_of_its_own_is_called_as_the_file() {
        let directory = tempfile::tempdir().unwrap();
        for (name, text, content_type, title) in [
            ("a.md", "# A", ContentType::Markdown, None),
            ("a.html", "<p>A", ContentType::Html, None),
            ("a.csv", "a,b", ContentType::Csv, Some("a.csv")),
            (
                "main.rs",
                "fn main() {}",
                ContentType::Markdown,
                Some("main.rs"),
            ),
        ] {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            let source = SourceToPublish::read(&path, None).unwrap();
            assert_eq!(source.content_type, content_type, "{name}");
            assert_eq!(source.title.as_deref(), title, "{name}");
        }
        let bytes = directory.path().join("a.png");
        std::fs::write(&bytes, b"\x89PNG\r\n\0").unwrap();
        for (content, place) in [
            (&b"\x89PNG\r\n\0"[..], ":1:1: "),
            (b"a\n\xc3\xa4b\xff", ":2:3: "),
            (b"ab\0", ":1:3: "),
        ] {
            std::fs::write(&bytes, content).unwrap();
            let refused = SourceToPublish::read(&bytes, None).unwrap_err().to_text();
            assert!(refused.contains(place), "{refused}");
        }
        assert!(SourceToPublish::read(directory.path(), None).is_err());
    }
}
