//! Renders the sources named on the command line into a directory, to be looked at in a browser.
//!
//! `cargo run -p guest-render --example pages -- DIRECTORY SOURCE…`; the type of a source follows from its extension.

use std::path::Path;

use guest_render::{Foot, Source, render};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| String::from("."));
    for name in arguments {
        let path = Path::new(&name);
        let extension = path.extension().and_then(|extension| extension.to_str());
        let content_type = match extension {
            Some("md") => "markdown",
            Some("mmd") => "mermaid",
            Some("json") => "json",
            Some("csv") => "csv",
            _ => "html",
        };
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let source = Source {
            content_type: content_type.to_owned(),
            title: None,
            name: None,
            text: std::fs::read_to_string(path)?,
            runtime: None,
            page_bytes: 1 << 24,
            foot: Some(Foot {
                raw: Some(format!("/{stem}/raw")),
                expires_at: Some("2026-11-29T12:00:00.000Z".to_owned()),
                report: Some("/_svc/report".to_owned()),
            }),
            is_private: false,
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
