//! Both guests through the host: every call ends in one of the ways that there are, and as the same code ends natively.

use std::path::PathBuf;

use guest_gate::statement as native;
use svc_sandbox::{
    ContentType, GateFailure, RenderFailure, RenderSource, RuntimeScript, Sandbox, SandboxConfig,
    SqlPurpose,
};
use tokio::runtime::{Builder, Runtime};

use super::gate::BETWEEN;
use super::page;

const PURPOSES: [(SqlPurpose, native::SqlPurpose); 4] = [
    (SqlPurpose::Action, native::SqlPurpose::Action),
    (SqlPurpose::Query, native::SqlPurpose::Query),
    (SqlPurpose::Schema, native::SqlPurpose::Schema),
    (SqlPurpose::Migration, native::SqlPurpose::Migration),
];

const PAGE_BYTES: usize = 1 << 20;

/// The sandbox that everything goes through.
pub(crate) struct Host {
    sandbox: Sandbox,
    runtime: Runtime,
}

impl Host {
    /// The built-in guests with the house's limits.
    pub(crate) fn start(cache_dir: PathBuf) -> Self {
        let sandbox = Sandbox::start(SandboxConfig::new(cache_dir)).expect("a sandbox");
        let runtime = Builder::new_current_thread().enable_all().build();
        Self {
            sandbox,
            runtime: runtime.expect("a runtime"),
        }
    }

    /// Renders a text as every type, with its diagrams.
    pub(crate) fn render(&self, data: &[u8]) {
        let text = String::from_utf8_lossy(data);
        for kind in ContentType::ALL {
            let source = RenderSource {
                content_type: kind,
                title: Some(text.chars().take(20).collect()),
                name: None,
                text: text.clone().into_owned(),
                runtime: Some(RuntimeScript {
                    src: page::RUNTIME.to_owned(),
                    slug: "a-slug".to_owned(),
                }),
                page_bytes: PAGE_BYTES,
                foot: None,
                is_private: false,
            };
            match self.runtime.block_on(self.sandbox.render(source)) {
                Ok(found) => {
                    assert!(found.html.len() <= PAGE_BYTES, "{kind:?}: too large");
                    let html = std::str::from_utf8(&found.html).expect("a page is text");
                    if let Err(wrong) = page::check(html, kind.as_str(), &text, true) {
                        panic!("{kind:?}: {wrong}");
                    }
                }
                Err(RenderFailure::Malformed(malformed)) => {
                    let place = malformed.place;
                    assert!(place.is_none_or(|place| place.line >= 1 && place.column >= 1));
                    assert!(!malformed.message.is_empty());
                }
                Err(RenderFailure::Budget(_)) => {}
                Err(failure) => panic!("{kind:?}: {failure}"),
            }
        }
    }

    /// Judges each statement of a text for each purpose.
    pub(crate) fn judge(&self, data: &[u8]) {
        let text = String::from_utf8_lossy(data);
        for sql in text.split(BETWEEN) {
            for (purpose, same) in PURPOSES {
                let verdict = self.runtime.block_on(self.sandbox.check_sql(sql, purpose));
                match (verdict, native::check(sql, same)) {
                    (Ok(ours), Ok(theirs)) => {
                        assert_eq!(ours.len(), theirs.len());
                        for (ours, theirs) in ours.iter().zip(&theirs) {
                            assert_eq!(ours.binds, theirs.binds);
                            assert_eq!(ours.returns_rows, theirs.returns_rows);
                            let places = (theirs.start as usize, theirs.end as usize);
                            assert_eq!((ours.start, ours.end), places);
                        }
                    }
                    (Err(GateFailure::Refused(ours)), Err(theirs)) => {
                        assert_eq!(ours.statement, theirs.statement);
                        let position = ours.position.map(|position| position.offset);
                        assert_eq!(position, Some(theirs.position.offset));
                    }
                    (Err(GateFailure::Budget(_)), _) => {}
                    (ours, theirs) => {
                        panic!("the host says {ours:?}, the gate natively {theirs:?}")
                    }
                }
            }
        }
    }
}
