//! Files of sites against a model: random publications, waits and ends, of which the store keeps exactly what is named.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::{Value, json};
use svc::app::SharedApp;
use svc::content::Digest;
use svc::deployments::operators;
use svc::workspaces::Plan;

use crate::answer::{Answer, ReadAnswer};
use crate::seeded_rng::SeededRng;
use crate::server::TestServer;

/// Contents that files have. The last of them are of several objects.
const CONTENTS: usize = 30;
const LARGE_CONTENTS: usize = 3;
/// Projects that have the same contents.
const PROJECTS: usize = 2;
/// Sites of a project, and quick shares, that are there at once.
const SITES: usize = 4;
const SHARES: usize = 4;
/// Revisions of a site that are there at once.
const REVISIONS: usize = 6;
/// Paths of files.
const PATHS: [&str; 6] = ["a", "b.txt", "c/d.js", "c/e.css", "index.html", "large.bin"];
/// Seconds that a file waits for a publication.
const STAGED_SECONDS: u64 = 10_000;
/// Time after which the collector takes what nobody names.
const COLLECTION_GRACE_SECONDS: u64 = 61;
/// How often is looked for what nobody names, until it is a fault.
const MAX_LOOKS: usize = 20;
/// Seconds that are longer than all steps.
const LONG_SECONDS: u64 = 1 << 28;
/// Steps between two looks at everything.
const STEPS_PER_CHECK: usize = 100;
/// Steps between two restarts of the server, about.
const STEPS_PER_RESTART: usize = 300;

/// Files of a revision: contents by their paths.
type Files = BTreeMap<&'static str, usize>;

/// A project, as it must be.
#[derive(Debug, Default)]
struct ModelProject {
    id: String,
    /// Sites by their slugs.
    sites: BTreeMap<String, ModelSite>,
    /// Contents that wait for a publication, and until when.
    staged: BTreeMap<usize, u64>,
    /// Contents of which the project may still have files, although nothing names them.
    ended: BTreeSet<usize>,
}

/// A site, as it must be.
#[derive(Debug, Default)]
struct ModelSite {
    active: String,
    revisions: BTreeMap<String, Files>,
}

/// A quick share that is a site.
#[derive(Debug)]
struct ModelShare {
    id: String,
    token: String,
    files: Files,
}

/// A server, and what must be true of it.
#[derive(Debug)]
struct FileModel {
    server: Option<TestServer>,
    credential: String,
    random: SeededRng,
    now: u64,
    projects: Vec<ModelProject>,
    /// Shares by their slugs.
    shares: BTreeMap<String, ModelShare>,
    /// Pages whose source is one of the contents: their project, and their slug.
    pages: Vec<(usize, String)>,
    names: usize,
}

/// Returns the bytes of a content.
fn content(number: usize) -> Vec<u8> {
    let line = format!("content {number}\n");
    let times = match number >= CONTENTS - LARGE_CONTENTS {
        true => 100_000,
        false => 1 + number * 7,
    };
    line.repeat(times).into_bytes()
}

impl ModelProject {
    /// Returns the contents that the project has for sure.
    fn held(&self, now: u64) -> BTreeSet<usize> {
        let staged = self.staged.iter().filter(|(_, until)| **until > now);
        let revisions = self.sites.values().flat_map(|site| site.revisions.values());
        let named = revisions.flat_map(|files| files.values().copied());
        named.chain(staged.map(|(number, _)| *number)).collect()
    }

    /// Notes contents that may stay for a while although nothing names them any more.
    fn end(&mut self, files: impl IntoIterator<Item = usize>) {
        self.ended.extend(files);
    }
}

/// Takes so many random steps, and looks at everything now and then: no file is lost, and none is left over.
///
/// # Panics
/// Where the server differs from the model.
pub async fn run_file_model(seed: u64, steps: usize) {
    let builder = TestServer::builder().limits(|limits| {
        limits.blob_burst = 1_000_000;
        limits.staged_seconds = STAGED_SECONDS;
        limits.draft_seconds = LONG_SECONDS;
        limits.quick_share_seconds = LONG_SECONDS;
    });
    let mut model = FileModel::new(builder.start().await, seed).await;
    for step in 1..=steps {
        let churns = model.random.below(3) == 0;
        let app = model.app();
        let churn = async {
            if churns {
                app.files.sweep().await.unwrap();
                app.collector.collect().await.unwrap();
            }
        };
        tokio::join!(Box::pin(model.step()), churn);
        drop(app);
        if model.random.below(STEPS_PER_RESTART) == 0 {
            model.restart().await;
        }
        if step % STEPS_PER_CHECK == 0 {
            model.check().await;
        }
    }
    model.end_everything().await;
}

impl FileModel {
    async fn new(server: TestServer, seed: u64) -> Self {
        let workspaces = &server.server().app().workspaces;
        let made = workspaces.create("acme", Plan::Pro).await.unwrap();
        let mut model = Self {
            server: Some(server),
            credential: made.credential,
            random: SeededRng::new(seed),
            now: 0,
            projects: Vec::new(),
            shares: BTreeMap::new(),
            pages: Vec::new(),
            names: 0,
        };
        for number in 0..PROJECTS {
            let body = json!({ "name": format!("Project {number}") });
            let path = "/api/v1/projects";
            let made = model.send(Method::POST, path, Some(&body)).await;
            let id = text(&made.expect(201).json()["id"]);
            model.projects.push(ModelProject {
                id,
                ..ModelProject::default()
            });
        }
        model
    }

    fn server(&self) -> &TestServer {
        self.server.as_ref().expect("it runs")
    }

    fn app(&self) -> SharedApp {
        self.server().server().app().clone()
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let request = self.server().request(method, path);
        let request = request.bearer_auth(&self.credential);
        match body {
            Some(body) => request.json(body).answer().await,
            None => request.answer().await,
        }
    }

    async fn restart(&mut self) {
        let server = self.server.take().expect("it runs");
        self.server = Some(server.restart().await);
    }

    fn advance(&mut self, seconds: u64) {
        self.server().advance(seconds);
        self.now += seconds;
    }

    /// Returns a slug that nobody has had.
    fn slug(&mut self) -> String {
        self.names += 1;
        format!("name-{}", self.names)
    }

    /// Returns a random project that has a site with the slug, and that slug.
    fn random_site(&mut self) -> Option<(usize, String)> {
        let project = self.random.below(PROJECTS);
        let slugs: Vec<_> = self.projects[project].sites.keys().cloned().collect();
        let slug = slugs.get(self.random.below(slugs.len().max(1)))?;
        Some((project, slug.clone()))
    }

    /// Returns a random revision of a site.
    fn random_revision(&mut self, project: usize, slug: &str) -> String {
        let revisions = &self.projects[project].sites[slug].revisions;
        let ids: Vec<_> = revisions.keys().cloned().collect();
        let at = self.random.below(ids.len());
        ids[at].clone()
    }

    /// Makes up the files of a revision, some of them by their digests: returns them with what the request says.
    fn random_files(&mut self, project: Option<usize>) -> (Files, Value) {
        let held = match project {
            Some(project) => self.projects[project].held(self.now),
            None => BTreeSet::new(),
        };
        let held: Vec<_> = held.into_iter().collect();
        let (mut files, mut said) = (Files::new(), serde_json::Map::new());
        for _ in 0..=self.random.below(4) {
            let path = PATHS[self.random.below(PATHS.len())];
            let named = !held.is_empty() && self.random.below(2) == 0;
            let number = match named {
                true => held[self.random.below(held.len())],
                false => self.random.below(CONTENTS - LARGE_CONTENTS),
            };
            let bytes = content(number);
            let file = match named {
                true => json!({ "sha256": Digest::of(&bytes).to_string(), "size": bytes.len() }),
                false => json!({ "text": String::from_utf8(bytes).unwrap() }),
            };
            files.insert(path, number);
            said.insert(path.to_owned(), file);
        }
        (files, Value::Object(said))
    }

    fn frontends(&self, project: usize) -> String {
        format!("/api/v1/projects/{}/frontends", self.projects[project].id)
    }

    /// Returns the id of a site's live revision.
    async fn active(&self, project: usize, slug: &str) -> String {
        let path = format!("{}/{slug}/revisions?limit=1", self.frontends(project));
        let listed = self.send(Method::GET, &path, None).await;
        text(&listed.expect(200).json()["active_revision_id"])
    }

    /// Takes one random step.
    async fn step(&mut self) {
        match self.random.below(100) {
            0..20 => self.send_file().await,
            20..34 => self.create_site().await,
            34..48 => self.republish_site().await,
            48..62 => self.draft_site().await,
            62..70 => self.promote().await,
            70..80 => self.delete_revision().await,
            80..84 => self.delete_site().await,
            84..88 => self.share_site().await,
            88..91 => self.end_share().await,
            91..94 => self.change_pages().await,
            94..99 => {
                let seconds = self.random.below(4_000);
                self.advance(seconds as u64);
            }
            _ => self.refuse_unknown().await,
        }
    }

    async fn send_file(&mut self) {
        let (project, number) = (self.random.below(PROJECTS), self.random.below(CONTENTS));
        let bytes = content(number);
        let path = format!(
            "/api/v1/projects/{}/blobs/{}",
            self.projects[project].id,
            Digest::of(&bytes)
        );
        let request = self.server().request(Method::PUT, &path);
        let request = request.bearer_auth(&self.credential).body(bytes);
        request.answer().await.expect(204);
        let until = self.now + STAGED_SECONDS;
        self.projects[project].staged.insert(number, until);
        self.projects[project].ended.insert(number);
    }

    async fn create_site(&mut self) {
        let project = self.random.below(PROJECTS);
        if self.projects[project].sites.len() >= SITES {
            return;
        }
        let (files, said) = self.random_files(Some(project));
        let slug = self.slug();
        let body = json!({ "type": "site", "files": said, "requested_slug": slug });
        let path = self.frontends(project);
        let made = self.send(Method::POST, &path, Some(&body)).await;
        made.expect(201);
        self.add_site(project, slug, files).await;
    }

    async fn add_site(&mut self, project: usize, slug: String, files: Files) {
        let active = self.active(project, &slug).await;
        let site = ModelSite {
            revisions: BTreeMap::from([(active.clone(), files)]),
            active,
        };
        self.projects[project].sites.insert(slug, site);
    }

    async fn republish_site(&mut self) {
        let Some((project, slug)) = self.random_site() else {
            return;
        };
        let (files, said) = self.random_files(Some(project));
        let path = format!("{}/{slug}", self.frontends(project));
        let body = json!({ "files": said });
        self.send(Method::PUT, &path, Some(&body)).await.expect(200);
        let active = self.active(project, &slug).await;
        let site = self.projects[project].sites.get_mut(&slug).unwrap();
        site.revisions.insert(active.clone(), files);
        site.active = active;
    }

    async fn draft_site(&mut self) {
        let Some((project, slug)) = self.random_site() else {
            return;
        };
        let site = &self.projects[project].sites[&slug];
        if site.revisions.len() >= REVISIONS {
            return;
        }
        let (base, mut whole) = (site.active.clone(), site.revisions[&site.active].clone());
        let (files, said) = self.random_files(Some(project));
        whole.extend(files);
        let path = format!("{}/{slug}/revisions", self.frontends(project));
        let body = json!({ "base_revision_id": base, "changes": { "set": said } });
        let drafted = self.send(Method::POST, &path, Some(&body)).await;
        let drafted = drafted.expect(200).json();
        let id = text(&drafted["revision"]["revision_id"]);
        let site = self.projects[project].sites.get_mut(&slug).unwrap();
        site.revisions.insert(id, whole);
    }

    async fn promote(&mut self) {
        let Some((project, slug)) = self.random_site() else {
            return;
        };
        let id = self.random_revision(project, &slug);
        let active = &self.projects[project].sites[&slug].active;
        let body = json!({ "revision_id": id, "expected_active_revision_id": active });
        let path = format!("{}/{slug}/promote", self.frontends(project));
        self.send(Method::POST, &path, Some(&body))
            .await
            .expect(200);
        let site = self.projects[project].sites.get_mut(&slug).unwrap();
        site.active = id;
    }

    async fn delete_revision(&mut self) {
        let Some((project, slug)) = self.random_site() else {
            return;
        };
        let id = self.random_revision(project, &slug);
        let path = format!("{}/{slug}/revisions/{id}", self.frontends(project));
        let deleted = self.send(Method::DELETE, &path, None).await;
        let project = &mut self.projects[project];
        let site = project.sites.get_mut(&slug).unwrap();
        if site.active == id {
            deleted.problem(409, "revision_conflict");
            return;
        }
        deleted.expect(204);
        let files = site.revisions.remove(&id).unwrap();
        project.end(files.into_values());
    }

    async fn delete_site(&mut self) {
        let Some((project, slug)) = self.random_site() else {
            return;
        };
        let path = format!("{}/{slug}", self.frontends(project));
        self.send(Method::DELETE, &path, None).await.expect(204);
        let project = &mut self.projects[project];
        let site = project.sites.remove(&slug).unwrap();
        let revisions = site.revisions.into_values();
        project.end(revisions.flat_map(Files::into_values));
    }

    async fn share_site(&mut self) {
        if self.shares.len() >= SHARES {
            return;
        }
        let (files, said) = self.random_files(None);
        let slug = self.slug();
        let body = json!({ "type": "site", "files": said, "name": slug });
        let shared = self.server().deploy(&body).await;
        let share = ModelShare {
            id: text(&shared["id"]),
            token: text(&shared["delete_token"]),
            files,
        };
        self.shares.insert(slug, share);
    }

    /// Claims a share for a project that has room, or else deletes it.
    async fn end_share(&mut self) {
        let Some((slug, share)) = self.shares.pop_first() else {
            return;
        };
        let project = self.random.below(PROJECTS);
        if self.projects[project].sites.len() < SITES {
            let body = json!({ "id": share.id, "delete_token": share.token });
            let path = format!("{}/claim", self.frontends(project));
            let claimed = self.send(Method::POST, &path, Some(&body)).await;
            claimed.expect(201);
            self.add_site(project, slug, share.files).await;
            return;
        }
        let path = format!("/api/v1/deploy/{}", share.id);
        let deleting = self.server().request(Method::DELETE, &path);
        let deleted = deleting.bearer_auth(&share.token).answer().await;
        deleted.expect(204);
    }

    /// Makes a page whose source is the content of a file, or deletes one.
    async fn change_pages(&mut self) {
        if let Some((project, slug)) = self.pages.pop() {
            let path = format!("{}/{slug}", self.frontends(project));
            self.send(Method::DELETE, &path, None).await.expect(204);
            return;
        }
        for _ in 0..2 {
            let (project, slug) = (self.random.below(PROJECTS), self.slug());
            let source = content(self.random.below(CONTENTS - LARGE_CONTENTS));
            let source = String::from_utf8(source).unwrap();
            let body = json!({ "type": "markdown", "content": source, "requested_slug": slug });
            let path = self.frontends(project);
            let made = self.send(Method::POST, &path, Some(&body)).await;
            made.expect(201);
            self.pages.push((project, slug));
        }
    }

    /// Names a file that the project has never had, or has had and must not have any more.
    async fn refuse_unknown(&mut self) {
        let project = self.random.below(PROJECTS);
        let held = self.projects[project].held(self.now);
        let ended = &self.projects[project].ended;
        let unknown =
            (0..CONTENTS).find(|number| !held.contains(number) && !ended.contains(number));
        let Some(unknown) = unknown else {
            return;
        };
        let digest = Digest::of(&content(unknown)).to_string();
        let body = json!({ "type": "site", "files": { "a": { "sha256": digest } } });
        let path = self.frontends(project);
        let refused = self.send(Method::POST, &path, Some(&body)).await;
        refused.problem(409, "files_missing");
    }

    /// Looks for what nobody names. The server makes encodings beside this, for files that may have ended meanwhile, so that some is
    /// collected a little later.
    async fn expect_nothing_left_over(&mut self) {
        let app = self.app();
        let mut tries = 0;
        loop {
            let found = operators::check(&app.control, &app.content, None).await;
            let found = found.unwrap();
            assert_eq!(found.errors, [] as [String; 0]);
            if found.leftovers.is_empty() {
                return;
            }
            tries += 1;
            assert!(tries < MAX_LOOKS, "{:?}", found.leftovers);
            self.advance(COLLECTION_GRACE_SECONDS);
            app.files.make_encodings().await.unwrap();
            app.collector.collect().await.unwrap();
        }
    }

    /// Looks at everything: what is named is there, byte for byte, and once all that waits has waited, nothing else is.
    async fn check(&mut self) {
        self.read_everything().await;
        for _ in 0..3 {
            self.advance(STAGED_SECONDS);
            let app = self.app();
            app.files.sweep().await.unwrap();
            app.collector.collect().await.unwrap();
        }
        let now = self.now;
        for project in &mut self.projects {
            project.staged.retain(|_, until| *until > now);
            project.ended.clear();
        }
        self.expect_nothing_left_over().await;
        let held = self.projects.iter().map(|project| project.held(now).len());
        let shared = self.shares.values().map(|share| {
            let distinct: BTreeSet<_> = share.files.values().collect();
            distinct.len()
        });
        let expected: usize = held.chain(shared).sum();
        let sql = "SELECT count(*) FROM blobs";
        let app = self.app();
        let rows = app
            .control
            .read(move |c| c.query_row(sql, [], |row| row.get::<_, i64>(0)));
        assert_eq!(usize::try_from(rows.await.unwrap()).unwrap(), expected);
        self.read_everything().await;
    }

    /// Reads every file of every revision.
    async fn read_everything(&self) {
        for (number, project) in self.projects.iter().enumerate() {
            for (slug, site) in &project.sites {
                for (revision, files) in &site.revisions {
                    for (path, file) in files {
                        let path = format!(
                            "{}/{slug}/files/{path}?revision_id={revision}",
                            self.frontends(number)
                        );
                        let read = self.send(Method::GET, &path, None).await;
                        assert!(read.expect(200).body == content(*file), "{path}");
                    }
                }
            }
        }
        for (slug, share) in &self.shares {
            for (path, file) in &share.files {
                // The start page answers at its folder.
                let path = format!("/{slug}/{}", path.trim_end_matches("index.html"));
                let read = self.server().get(&path).answer().await;
                assert!(read.expect(200).body == content(*file), "{path}");
            }
        }
    }

    /// Ends all that was made, of which nothing is left then.
    async fn end_everything(mut self) {
        self.check().await;
        while let Some((project, slug)) = self.pages.pop() {
            let path = format!("{}/{slug}", self.frontends(project));
            self.send(Method::DELETE, &path, None).await.expect(204);
        }
        for share in std::mem::take(&mut self.shares).into_values() {
            let path = format!("/api/v1/deploy/{}", share.id);
            let deleting = self.server().request(Method::DELETE, &path);
            deleting
                .bearer_auth(&share.token)
                .answer()
                .await
                .expect(204);
        }
        for project in 0..PROJECTS {
            let path = format!("/api/v1/projects/{}", self.projects[project].id);
            self.send(Method::DELETE, &path, None).await.expect(204);
            self.projects[project].sites.clear();
        }
        self.app().teardown.run().await.unwrap();
        self.check().await;
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
