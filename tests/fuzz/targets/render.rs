//! The renderer natively: whatever the source, a page that keeps the contract or a reason with a place.

use guest_render::{RENDERERS, RenderError, RuntimeScript, Source, render};

use super::page;

/// Of the largest page. A source of the fuzzer's is far smaller.
const PAGE_BYTES: u32 = 16 << 20;

/// Renders a text as every type.
pub(crate) fn render_all(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for (content_type, _) in RENDERERS {
        let mut source = Source {
            content_type: content_type.to_owned(),
            title: title(&text),
            name: None,
            text: text.clone().into_owned(),
            runtime: None,
            page_bytes: PAGE_BYTES,
            foot: None,
            is_private: false,
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

/// A title that is as strange as the text, or none.
fn title(text: &str) -> Option<String> {
    text.len()
        .is_multiple_of(2)
        .then(|| text.chars().take(20).collect())
}

fn keeps_the_contract(source: &Source) {
    let kind = source.content_type.as_str();
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
            let place = malformed.place;
            assert!(place.is_none_or(|place| place.line >= 1 && place.column >= 1));
            assert!(!malformed.message.is_empty());
        }
        Err(RenderError::TooLarge) => {}
        Err(RenderError::Unsupported) => panic!("{kind} is a type of its own"),
    }
}
