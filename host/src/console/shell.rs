//! The document of all screens: the shell with the import map, and the policy that lets nothing else in.

use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;
use http::HeaderValue;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::files::ConsoleFile;
use super::headers::document_headers;
use crate::config::Config;
use crate::http::content_policy::hash_source;
use crate::http::document::EncodedDocument;

/// The shell. `{{import_map}}` stands for the import map, and `{{app/main.js}}` for the address of that file.
const TEMPLATE: &str = include_str!("../../assets/console/index.html");
/// Which published library is which file.
const VENDOR_LIST: &str = include_str!("../../assets/console/vendor/vendor.json");
const IMPORT_MAP_PLACEHOLDER: &str = "{{import_map}}";

/// Modules of others, by the names that import them.
#[derive(Deserialize)]
struct VendorList {
    modules: BTreeMap<String, VendorModule>,
}

#[derive(Deserialize)]
struct VendorModule {
    /// Name in the folder `vendor`.
    file: String,
}

/// The document before it is compressed.
#[derive(Debug)]
pub(super) struct ConsoleShell {
    html: String,
    policy: String,
}

impl ConsoleShell {
    /// Makes the document of an installation, with the addresses of these files.
    pub(super) fn new(config: &Config, files: &[ConsoleFile]) -> Self {
        let import_map = import_map(files);
        let html = TEMPLATE.replace(IMPORT_MAP_PLACEHOLDER, &import_map);
        let html = files.iter().fold(html, |html, file| {
            html.replace(&format!("{{{{{}}}}}", file.path), &file.address())
        });
        let policy = content_security_policy(config, &import_map);
        Self {
            html: name_policy(html, &policy),
            policy,
        }
    }

    /// Compresses the document.
    ///
    /// # Errors
    /// Only when a compressor fails, or an origin of the settings is no header's value.
    pub(super) fn into_document(self) -> io::Result<EncodedDocument> {
        let policy = HeaderValue::try_from(self.policy).map_err(io::Error::other)?;
        EncodedDocument::compressed_densely(Bytes::from(self.html), &document_headers(policy))
    }
}

/// Names the policy in the document. Browsers keep the policy that they have when they are told that a document has not changed, so
/// another policy makes another document.
fn name_policy(html: String, policy: &str) -> String {
    html + &format!("<!-- {} -->\n", hash_source(policy))
}

/// Returns the import map: own modules by their paths (`app/api.js`), those of others by their packages' names.
fn import_map(files: &[ConsoleFile]) -> String {
    let modules = || files.iter().filter(|file| file.is_module());
    let own = modules().filter(|file| !file.path.starts_with("vendor/"));
    let mut imports: BTreeMap<String, String> = own
        .map(|file| (file.path.to_owned(), file.address()))
        .collect();
    let vendor: Option<VendorList> = serde_json::from_str(VENDOR_LIST).ok();
    for (name, module) in vendor.into_iter().flat_map(|list| list.modules) {
        let path = format!("vendor/{}", module.file);
        if let Some(file) = modules().find(|file| file.path == path) {
            imports.insert(name, file.address());
        }
    }
    json!({ "imports": imports }).to_string()
}

/// Composes the policy of the document: own files, the import map by its digest, the issuer's answers, and previews of the sites host.
fn content_security_policy(config: &Config, import_map: &str) -> String {
    let import_map = hash_source(import_map);
    let issuer = issuer_origin(config).map_or_else(String::new, |origin| format!(" {origin}"));
    format!(
        "default-src 'none'; script-src 'self' '{import_map}'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self'; \
         connect-src 'self'{issuer}; frame-src {}; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        config.sites_url
    )
}

/// Returns the origin of the issuer where people sign in, if the console is a client of one.
pub(super) fn issuer_origin(config: &Config) -> Option<String> {
    config.console.as_ref()?;
    let issuer = Url::parse(&config.oauth.as_ref()?.issuer).ok()?;
    Some(issuer.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::super::files::ConsoleFiles;
    use super::*;
    use crate::config::Settings;

    fn shell(toml: &str) -> ConsoleShell {
        let settings: Settings = toml::from_str(&format!("cache = '/c'\n{toml}")).unwrap();
        let config = settings.resolve("127.0.0.1:8080".parse().unwrap()).unwrap();
        ConsoleShell::new(&config, ConsoleFiles::default().all())
    }

    #[test]
    fn every_placeholder_is_filled_in() {
        let shell = shell("");
        assert!(!shell.html.contains("{{"), "{}", shell.html);
        assert_eq!(TEMPLATE.matches(IMPORT_MAP_PLACEHOLDER).count(), 1);
        assert!(shell.html.matches("/_svc/console/").count() > 2);
    }

    #[test]
    fn every_module_of_others_has_its_name() {
        let list: VendorList = serde_json::from_str(VENDOR_LIST).unwrap();
        let map = import_map(ConsoleFiles::default().all());
        for name in list.modules.keys() {
            assert!(map.contains(&format!("\"{name}\":")), "{name}: {map}");
        }
    }

    #[test]
    fn the_only_inline_script_is_the_import_map() {
        let shell = shell("");
        let scripts = shell.html.split("<script").skip(1);
        for script in scripts {
            let (attributes, text) = script.split_once('>').unwrap();
            let text = text.split("</script>").next().unwrap();
            match attributes.contains("importmap") {
                true => assert!(shell.policy.contains(&hash_source(text))),
                false => assert_eq!(text, "", "{script}"),
            }
        }
        assert!(!shell.html.contains(" style="));
    }

    #[test]
    fn only_the_issuer_of_the_console_is_called() {
        let oauth = "[oauth]\nissuer = 'https://id.example.com/realms/a'\naudience = 'svc'";
        assert!(shell(oauth).policy.contains("connect-src 'self';"));
        let console = shell(&format!("{oauth}\n[console]\nclient_id = 'console'"));
        let calls = "connect-src 'self' https://id.example.com;";
        assert!(console.policy.contains(calls), "{}", console.policy);
        assert_ne!(console.html, shell(oauth).html);
    }
}
