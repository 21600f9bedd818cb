//! The renderer natively: whatever the source, a page that keeps the contract or a reason with a place.

use guest_render::{RenderError, RuntimeScript, Source, render};

use super::page;

/// Of the largest page. A source of the fuzzer's is far smaller.
const PAGE_BYTES: u32 = 16 << 20;

/// Renders a text as every type.
pub(crate) fn render_all(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for content_type in page::TYPES {
        let mut source = Source {
            content_type,
            title: title(&text),
            text: text.clone().into_owned(),
            runtime: None,
            page_bytes: PAGE_BYTES,
        };
        keeps_the_contract(&source);
        source.runtime = Some(RuntimeScript {
            src: page::RUNTIME.to_owned(),
            slug: "a-slug".to_owned(),
        });
        source.page_bytes = 20_000;
        keeps_the_contract(&source);
    }
}

/// A title that is as strange as the text.
fn title(text: &str) -> String {
    text.chars().take(20).collect()
}

fn keeps_the_contract(source: &Source) {
    let kind = source.content_type;
    let limit = source.page_bytes as usize;
    match render(source) {
        Ok(found) => {
            assert!(found.html.len() <= limit, "{kind:?}: too large");
            let runtime = source.runtime.is_some();
            if let Err(wrong) = page::check(&found.html, kind, &source.text, runtime) {
                panic!("{kind:?}: {wrong}");
            }
            let mut free_from = 0;
            for diagram in &found.diagrams {
                let (start, end) = (diagram.start as usize, diagram.end as usize);
                assert!(start >= free_from && found.html.get(start..end).is_some());
                free_from = end;
            }
            let again = render(source).expect("what was rendered once is rendered again");
            assert!(again == found, "{kind:?}: another page of the same source");
        }
        Err(RenderError::Malformed(malformed)) => {
            assert!(malformed.place.line >= 1 && malformed.place.column >= 1);
            assert!(!malformed.message.is_empty());
        }
        Err(RenderError::TooLarge) => {}
    }
}
