//! The minimal server: axum, one route, bytes from memory. It shows the minimum cost of a page view.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path as FilePath;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt;

/// Argument that starts this program as the minimal server; a directory follows.
pub(crate) const ARGUMENT: &str = "minimal";

type Pages = Arc<HashMap<String, Bytes>>;

/// Serves the files of a directory, `<name>.<encoding>`, from memory, until it is killed.
pub(crate) fn serve(directory: &str) -> anyhow::Result<()> {
    let pages: Pages = Arc::new(load(FilePath::new(directory))?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let listener = listener.tap_io(|stream| {
            // A socket that refuses works anyway.
            let _ = stream.set_nodelay(true);
        });
        writeln!(std::io::stdout(), "ready http://{address}")?;
        let router = Router::new().route("/{page}", get(page)).with_state(pages);
        Ok(axum::serve(listener, router).await?)
    })
}

fn load(directory: &FilePath) -> anyhow::Result<HashMap<String, Bytes>> {
    let mut pages = HashMap::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.context("a page without a name")?.to_owned();
        pages.insert(name, std::fs::read(path)?.into());
    }
    Ok(pages)
}

async fn page(State(pages): State<Pages>, Path(name): Path<String>) -> Response {
    let Some(page) = pages.get(&name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let kind = (header::CONTENT_TYPE, "text/html; charset=utf-8");
    if name.ends_with(".br") {
        return ([kind, (header::CONTENT_ENCODING, "br")], page.clone()).into_response();
    }
    ([kind], page.clone()).into_response()
}
