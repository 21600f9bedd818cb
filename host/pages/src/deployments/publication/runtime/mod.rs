//! The page's runtime: the one script that frontends get, and the parts that it loads where they are used, each served under
//! its digest for as long as a page may name it. The files of a site ask for it at an address below the site, which is in the script then.

pub mod reload;
pub mod routes;
mod store;

use std::sync::LazyLock;

use bytes::Bytes;
use quick_cache::sync::Cache;
use tokio::sync::OnceCell;

use super::PublishError;
use crate::content::{ContentStore, Digest};
use crate::control::Error;
use crate::infra::Infra;

/// The script, put together from its parts: one scope, opened by the first and closed by the last.
static TEMPLATE: LazyLock<ScriptTemplate> =
    LazyLock::new(|| ScriptTemplate::new(&[SCRIPT_PARTS, SCRIPT_END].concat()));
/// The script on the server of `svc dev`, whose pages load themselves again. No other server has it.
static RELOADING_TEMPLATE: LazyLock<ScriptTemplate> = LazyLock::new(|| {
    ScriptTemplate::new(&[SCRIPT_PARTS, reload::SCRIPT_PART, SCRIPT_END].concat())
});
/// The script that finds its page's slug in its own element.
static SCRIPT: LazyLock<String> = LazyLock::new(|| TEMPLATE.of_element());
static RELOADING_SCRIPT: LazyLock<String> = LazyLock::new(|| RELOADING_TEMPLATE.of_element());
/// Module that the runtime loads when a page first listens to a live query.
const LIVE_MODULE: &str = include_str!("../../../../../assets/runtime/live.js");
/// Module that the runtime loads on a page of CSV.
const TABLE_MODULE: &str = include_str!("../../../../../assets/runtime/table.js");
const SCRIPT_PARTS: &str = concat!(
    include_str!("../../../../../assets/runtime/core.js"),
    include_str!("../../../../../assets/runtime/db.js"),
    include_str!("../../../../../assets/runtime/files.js"),
    include_str!("../../../../../assets/runtime/auth.js"),
    include_str!("../../../../../assets/runtime/room.js"),
    include_str!("../../../../../assets/runtime/pay.js"),
    include_str!("../../../../../assets/runtime/copy.js"),
    include_str!("../../../../../assets/runtime/tables.js"),
);
const SCRIPT_END: &str = include_str!("../../../../../assets/runtime/end.js");
/// The typings of the newest runtime.
pub const TYPINGS: &str = include_str!("../../../../../assets/runtime.d.ts");
/// Length of the digest in a runtime's name, in hexadecimal digits.
const NAME_DIGEST_DIGITS: usize = 32;

/// Number of scripts of earlier releases in memory, for pages that those releases made.
const MAX_OLDER_SCRIPTS: usize = 8;

/// The scripts that this program has, by their names.
static OWN_SCRIPTS: LazyLock<[(String, Digest, &str); 3]> = LazyLock::new(|| {
    let own: [&str; 3] = [&SCRIPT, LIVE_MODULE, TABLE_MODULE];
    own.map(|script| (runtime_name(script), Digest::of(script.as_bytes()), script))
});

/// Runtimes that pages name: the newest, stored or not yet, and older ones in memory.
#[derive(Debug)]
pub struct RuntimeScripts {
    infra: Infra,
    content: ContentStore,
    newest: OnceCell<String>,
    older: Cache<Digest, Bytes>,
}

/// The script without the slug of its page, and the path that the page's own routes begin with.
#[derive(Debug)]
struct ScriptTemplate {
    text: String,
    digest: Digest,
}

impl ScriptTemplate {
    /// Makes the template of a script in whose text the modules are not named yet.
    fn new(script: &str) -> Self {
        let text = name_modules(script);
        Self {
            digest: Digest::of(text.as_bytes()),
            text,
        }
    }

    fn with(&self, slug: &str, base: &str) -> String {
        let text = self.text.replace("MOUNT_SLUG", slug);
        text.replace("MOUNT_BASE", base)
    }

    /// Returns the script for an element that has the slug.
    fn of_element(&self) -> String {
        self.with("document.currentScript.dataset.slug", "`/${slug}`")
    }

    /// Returns the script of the site at a slug, whose own routes begin with `base`, with the digest of what decides its bytes.
    fn of_site(&self, slug: &str, base: &str) -> (Digest, String) {
        let decides = format!("{} {slug} {base}", self.digest);
        let script = self.with(&format!("'{slug}'"), &format!("'{base}'"));
        (Digest::of(decides.as_bytes()), script)
    }
}

/// Fills in the paths of the modules that a script loads.
fn name_modules(script: &str) -> String {
    script
        .replace("LIVE_PATH", &url_path(&runtime_name(LIVE_MODULE)))
        .replace("TABLE_PATH", &url_path(&runtime_name(TABLE_MODULE)))
}

/// Composes the URL path of a runtime.
fn url_path(name: &str) -> String {
    format!("/_svc/runtime/{name}.js")
}

/// Returns the name of the newest runtime.
pub(in crate::deployments) fn newest_name() -> String {
    runtime_name(&SCRIPT)
}

fn runtime_name(script: &str) -> String {
    let digest = Digest::of(script.as_bytes()).to_string();
    digest.chars().take(NAME_DIGEST_DIGITS).collect()
}

/// Returns the URL path of the newest runtime, stored or not.
pub fn newest_path() -> String {
    url_path(&newest_name())
}

impl RuntimeScripts {
    /// Makes the runtimes of a server; the newest is stored when a page first needs it.
    pub fn new(infra: Infra, content: ContentStore) -> Self {
        Self {
            infra,
            content,
            newest: OnceCell::new(),
            older: Cache::new(MAX_OLDER_SCRIPTS),
        }
    }

    /// Returns the path of the newest runtime, whose bytes are durable before any page names it.
    pub(super) async fn ensure_newest_stored(&self) -> Result<String, PublishError> {
        let name = self.newest.get_or_try_init(|| self.store_newest()).await?;
        Ok(url_path(name))
    }

    async fn store_newest(&self) -> Result<String, PublishError> {
        // The files that the script loads are stored before the script.
        self.store_script(LIVE_MODULE).await?;
        self.store_script(TABLE_MODULE).await?;
        match self.infra.config.reload {
            Some(_) => self.store_script(&RELOADING_SCRIPT).await,
            None => self.store_script(&SCRIPT).await,
        }
    }

    async fn store_script(&self, script: &'static str) -> Result<String, PublishError> {
        let pin = self
            .content
            .put(Bytes::from_static(script.as_bytes()))
            .await?;
        let (digest, now) = (pin.digest(), self.infra.clock.now());
        let name = runtime_name(script);
        let stored = name.clone();
        self.infra
            .control
            .write(move |tx| store::insert_runtime(tx, &stored, &digest, now))
            .await
            .map_err(|error: Error| PublishError::from(error))?;
        Ok(name)
    }

    /// Returns the newest runtime for the site at a slug, whose own routes begin with `base`.
    pub async fn of_site(&self, slug: &str, base: &str) -> (Digest, Bytes) {
        // A page that is open after the next release of the server loads the modules of this one. Who may not write leaves it to others.
        if !self.infra.control.is_follower()
            && let Err(error) = self.ensure_newest_stored().await
        {
            tracing::warn!(%error, "the modules of the runtime could not be stored");
        }
        let template = match self.infra.config.reload {
            Some(_) => &RELOADING_TEMPLATE,
            None => &TEMPLATE,
        };
        let (digest, script) = template.of_site(slug, base);
        (digest, Bytes::from(script))
    }

    /// Returns the bytes of a runtime that a page may name.
    ///
    /// # Errors
    /// The store's.
    pub async fn script(&self, name: &str) -> anyhow::Result<Option<(Digest, Bytes)>> {
        if let Some((_, digest, script)) = OWN_SCRIPTS.iter().find(|own| own.0 == name) {
            return Ok(Some((*digest, Bytes::from_static(script.as_bytes()))));
        }
        let name = name.to_owned();
        let found = self
            .infra
            .control
            .read(move |c| store::find_runtime_digest(c, &name));
        let Some(digest) = found.await? else {
            return Ok(None);
        };
        let read = async {
            let bytes = self.content.get(&digest).await?;
            bytes.ok_or_else(|| anyhow::anyhow!("runtime {digest} is missing"))
        };
        let bytes = self.older.get_or_insert_async(&digest, read).await?;
        Ok(Some((digest, bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_knows_its_site() {
        let (at_slug, below) = TEMPLATE.of_site("app", "/app");
        assert!(below.contains("const slug = 'app';\n  const base = '/app';"));
        assert!(!below.contains("currentScript") && !below.contains("MOUNT_"));
        let (at_root, _) = TEMPLATE.of_site("app", "");
        assert_ne!(at_slug, at_root);
        assert!(SCRIPT.contains(
            "const slug = document.currentScript.dataset.slug;\n  const base = `/${slug}`;"
        ));
    }
}
