//! Renders the sources named on the command line into a directory, to be looked at in a browser.
//!
//! `cargo run -p guest-render --example pages -- DIRECTORY SOURCE…`; the type of a source follows from its extension.

use std::path::Path;

use guest_render::{ContentType, Source, render};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| String::from("."));
    for name in arguments {
        let path = Path::new(&name);
        let extension = path.extension().and_then(|extension| extension.to_str());
        let content_type = match extension {
            Some("md") => ContentType::Markdown,
            Some("mmd") => ContentType::Mermaid,
            Some("json") => ContentType::Json,
            Some("csv") => ContentType::Csv,
            _ => ContentType::Html,
        };
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let source = Source {
            content_type,
            title: stem.clone(),
            text: std::fs::read_to_string(path)?,
            runtime: None,
            page_bytes: 1 << 24,
        };
        let html = match render(&source) {
            Ok(page) => page.html,
            Err(error) => format!("<!doctype html><pre>{error:?}</pre>"),
        };
        let file = format!("{stem}.{}.html", extension.unwrap_or("html"));
        std::fs::write(Path::new(&directory).join(file), html)?;
    }
    Ok(())
}
