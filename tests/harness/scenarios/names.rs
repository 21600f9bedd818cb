//! Publishers at all nodes who want the same names: nobody gets what another one has.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, ReadAnswer as _};
use crate::issuer::TokenIssuer;
use crate::process::Binary;
use crate::seeded_rng::SeededRng;
use crate::three_nodes::ThreeNodes;

/// Publishers at once.
const PUBLISHERS: usize = 8;

/// Answer to a publisher who wanted a name.
#[derive(Clone, Debug)]
pub struct NameAnswer {
    pub name: String,
    pub publisher: usize,
    pub status: u16,
    /// Slug that the publisher got: the name, or another one.
    pub slug: Option<String>,
}

impl NameAnswer {
    fn new(name: &str, publisher: usize, answer: &Answer) -> Self {
        let is_made = answer.status == 201;
        let slug = is_made.then(|| answer.json()["slug"].as_str().unwrap().to_owned());
        Self {
            name: name.to_owned(),
            publisher,
            status: answer.status,
            slug,
        }
    }

    fn is_winner(&self) -> bool {
        self.slug.as_deref() == Some(self.name.as_str())
    }
}

/// Finds what is wrong with the answers to all publishers: one of them gets each name, and no slug is for two. `elsewhere` is the answer to
/// the others: 201 with another slug, or a refusal.
pub fn name_faults(answers: &[NameAnswer], elsewhere: u16) -> Vec<String> {
    let mut faults = Vec::new();
    let mut winners: BTreeMap<&str, usize> = BTreeMap::new();
    let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
    for answer in answers {
        *winners.entry(&answer.name).or_default() += usize::from(answer.is_winner());
        if !answer.is_winner() && answer.status != elsewhere {
            faults.push(format!("{answer:?}"));
        }
        if let Some(slug) = &answer.slug {
            *owners.entry(slug).or_default() += 1;
        }
    }
    for (name, count) in winners {
        if count != 1 {
            faults.push(format!("{name} has {count} winners"));
        }
    }
    for (slug, count) in owners {
        if count > 1 {
            faults.push(format!("{slug} was given to {count} publishers"));
        }
    }
    faults
}

/// Has publishers race for names, of pages and of workspaces, each request at a random node.
///
/// # Panics
/// When a name has not one winner, or not the same at every node.
pub async fn race_for_names(binary: Binary, names: usize, seed: u64) {
    let issuer = TokenIssuer::start().await;
    let nodes = ThreeNodes::start(binary, &issuer.settings()).await;
    let tokens: Vec<_> = (0..PUBLISHERS)
        .map(|publisher| issuer.token_now(&format!("publisher-{publisher}")))
        .collect();
    let mut rng = SeededRng::new(seed);
    let (mut pages, mut workspaces) = (Vec::new(), Vec::new());
    for number in 0..names {
        let name = format!("name-of-{number}");
        let page = |publisher: usize| {
            let content = format!("<p>by publisher {publisher}</p>");
            (json!({ "content": content, "name": name }), None::<&str>)
        };
        pages.extend(race(&nodes, &mut rng, "/api/v1/deploy", &name, page).await);
        let workspace = |publisher: usize| {
            let body = json!({ "display_name": name, "slug": name });
            (body, Some(tokens[publisher].as_str()))
        };
        workspaces.extend(race(&nodes, &mut rng, "/api/v1/workspaces", &name, workspace).await);
    }
    let faults = name_faults(&pages, 201);
    assert!(faults.is_empty(), "{faults:#?}");
    let faults = name_faults(&workspaces, 409);
    assert!(faults.is_empty(), "{faults:#?}");
    for page in &pages {
        check_page(&nodes, page).await;
    }
    for workspace in &workspaces {
        check_workspace(&nodes, workspace, &tokens[workspace.publisher]).await;
    }
}

/// Has all publishers ask for a name at once, with the body and the credential that each has.
async fn race<'t>(
    nodes: &ThreeNodes,
    rng: &mut SeededRng,
    path: &str,
    name: &str,
    request: impl Fn(usize) -> (Value, Option<&'t str>),
) -> Vec<NameAnswer> {
    let publishers = (0..PUBLISHERS).map(|publisher| {
        let mut rng = SeededRng::new(rng.draw());
        let (body, credential) = request(publisher);
        async move {
            let key = format!("{name}-{publisher}");
            let sent = nodes.send(&mut rng, path, &body, &key, credential);
            NameAnswer::new(name, publisher, &sent.await)
        }
    });
    join_all(publishers).await
}

/// Looks whether a page is its publisher's at every node, byte for byte.
async fn check_page(nodes: &ThreeNodes, page: &NameAnswer) {
    let path = format!("/{}", page.slug.as_ref().unwrap());
    let mut first: Option<Answer> = None;
    for node in nodes.living() {
        let shown = nodes.request(node, Method::GET, &path).answer().await;
        let shown = shown.expect(200);
        let text = format!("by publisher {}", page.publisher);
        assert!(shown.text().contains(&text), "{path}: {}", shown.text());
        let first = first.get_or_insert_with(|| shown.clone());
        assert!(first.is_same(&shown), "{first:?} {shown:?}");
    }
}

/// Looks whether a workspace is its winner's at every node, and nobody else's.
async fn check_workspace(nodes: &ThreeNodes, workspace: &NameAnswer, token: &str) {
    let path = format!("/api/v1/workspaces/{}", workspace.name);
    let status = if workspace.is_winner() { 200 } else { 403 };
    for node in nodes.living() {
        let shown = nodes.request(node, Method::GET, &path).bearer_auth(token);
        shown.answer().await.expect(status);
    }
}
