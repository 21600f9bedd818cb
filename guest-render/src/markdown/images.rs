//! Images by URL: loaded lazily, and without a referrer.

use std::fmt;

use comrak::nodes::NodeLink;

/// Writes the beginning of an image, up to its alternative text.
pub(super) fn open_image(out: &mut dyn fmt::Write, link: &NodeLink) -> fmt::Result {
    out.write_str("<img src=\"")?;
    comrak::html::escape_href(out, &link.url, false)?;
    out.write_str("\" referrerpolicy=\"no-referrer\" loading=\"lazy\" alt=\"")
}

/// Writes the end of an image.
pub(super) fn close_image(out: &mut dyn fmt::Write, link: &NodeLink) -> fmt::Result {
    if !link.title.is_empty() {
        out.write_str("\" title=\"")?;
        comrak::html::escape(out, &link.title)?;
    }
    out.write_str("\" />")
}

/// Beginnings of blocks whose text is no markup.
const RAW_BLOCK_OPENINGS: [&str; 5] = ["<script", "<style", "<pre", "<textarea", "<!--"];

/// Writes raw HTML, and adds the attributes of Markdown's images to its images. They come first, because the first of two
/// attributes counts, and have no quotes, so that a string in a script stays intact.
pub(super) fn write_html(out: &mut dyn fmt::Write, html: &str) -> fmt::Result {
    let start = html.trim_start();
    let is_verbatim = RAW_BLOCK_OPENINGS.iter().any(|tag| {
        start
            .get(..tag.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(tag))
    });
    if is_verbatim {
        return out.write_str(html);
    }
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let end = at + "<img".len();
        let is_image = rest
            .get(at..end)
            .is_some_and(|tag| tag.eq_ignore_ascii_case("<img"))
            && rest[end..].starts_with([' ', '\t', '\n', '\r', '/']);
        let written = if is_image { end } else { at + 1 };
        out.write_str(&rest[..written])?;
        if is_image {
            out.write_str(" referrerpolicy=no-referrer loading=lazy")?;
        }
        rest = &rest[written..];
    }
    out.write_str(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_in_html_tell_nobody() {
        for (html, expected) in [
            ("<b>no</b>", "<b>no</b>"),
            (
                "<img src=x>",
                "<img referrerpolicy=no-referrer loading=lazy src=x>",
            ),
            (
                "a<IMG\nsrc=x><img/src=y>",
                "a<IMG referrerpolicy=no-referrer loading=lazy\nsrc=x><img referrerpolicy=no-referrer loading=lazy/src=y>",
            ),
            ("<imgx><img", "<imgx><img"),
            (
                "<script>'<img src=x>'</script>",
                "<script>'<img src=x>'</script>",
            ),
            ("<!-- <img src=x> -->", "<!-- <img src=x> -->"),
            ("<ü", "<ü"),
        ] {
            let mut out = String::new();
            write_html(&mut out, html).unwrap();
            assert_eq!(out, expected);
        }
    }
}
