//! Keys, memberships and sessions that end while nodes are cut off from each other: refused everywhere in the first request after that.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use http::Method;
use reqwest::RequestBuilder;
use serde_json::json;
use tokio::time::sleep;

use crate::answer::ReadAnswer as _;
use crate::browser::{Browser, location};
use crate::issuer::TokenIssuer;
use crate::process::Binary;
use crate::relay::RelayMode;
use crate::seeded_rng::SeededRng;
use crate::three_nodes::{LONGEST, NODES, ORIGIN, ThreeNodes};
use crate::wait::wait_until;

/// Longest time for which a node that is cut off may answer as before.
const LATE: Duration = Duration::from_secs(1);
/// Time for which nodes are asked after an end.
const WATCHED: Duration = Duration::from_millis(1_500);
/// Most milliseconds from a cut to an end.
const CUT_MILLIS: usize = 1_500;
/// Pause between two requests.
const PAUSE: Duration = Duration::from_millis(20);
/// Faults of the way to a node.
const CUTS: [RelayMode; 4] = [
    RelayMode::Refuse,
    RelayMode::Hang,
    RelayMode::HoldRequests,
    RelayMode::HoldAnswers,
];

const KEYS: &str = "/api/v1/workspaces/acme/keys";
const MEMBERS: &str = "/api/v1/workspaces/acme/members";
const MINE: &str = "SELECT :svc_user_id AS id";

/// Answer to a request with an authority that had ended.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// Status, if a whole answer came.
    pub status: Option<u16>,
    /// Whether the node was cut off, or may have been.
    pub is_cut: bool,
    /// Time from the answer to the end until the request began.
    pub after: Duration,
    /// Time until the answer.
    pub took: Duration,
}

impl Attempt {
    /// Sends a request with an authority that ended at `ended`.
    pub async fn make(request: RequestBuilder, ended: Instant, is_cut: bool) -> Self {
        let begun = Instant::now();
        let answer = request.try_answer().await;
        Self {
            status: answer.map(|answer| answer.status),
            is_cut,
            after: begun.duration_since(ended),
            took: begun.elapsed(),
        }
    }

    /// Finds what is wrong with it.
    pub fn fault(&self) -> Option<String> {
        let is_late = self.took > LONGEST;
        let is_right = match self.status {
            Some(401 | 403 | 503) => true,
            Some(200) => self.is_cut && self.after < LATE,
            Some(_) | None => false,
        };
        (is_late || !is_right).then(|| format!("{self:?}"))
    }
}

/// Proof of who calls, and the request that ends it.
#[derive(Debug)]
enum Authority {
    Key { credential: String, path: String },
    Member { token: String, path: String },
    Session { cookie: String },
}

/// An installation whose page `room` has visitors, and whose workspace has members.
struct Site {
    nodes: ThreeNodes,
    issuer: TokenIssuer,
}

/// Ends a key, a membership and a session a round, in every other one while a node is cut off, and asks all nodes at once.
///
/// # Panics
/// When a node takes one that had ended.
pub async fn end_authorities(binary: Binary, rounds: usize, seed: u64) {
    let site = Site::start(binary).await;
    let mut rng = SeededRng::new(seed);
    for round in 0..rounds {
        let control = site.nodes.control().await;
        let authorities = site.grant(control, round).await;
        for authority in &authorities {
            site.wait_until_taken(authority).await;
        }
        let cut = (round % 2 == 1).then(|| rng.below(NODES));
        if let Some(at) = cut {
            let mode = CUTS[rng.below(CUTS.len())];
            println!("round {round}: {mode:?} before n{}", at + 1);
            site.nodes.switch(at, mode);
            let wait = rng.below(CUT_MILLIS) as u64;
            sleep(Duration::from_millis(wait)).await;
        }
        let ends = authorities
            .iter()
            .map(|authority| site.end_and_watch(authority, control, cut));
        let faults: Vec<_> = join_all(ends).await.into_iter().flatten().collect();
        assert!(faults.is_empty(), "round {round}: {faults:#?}");
        if let Some(at) = cut {
            site.nodes.switch(at, RelayMode::Pass);
        }
        site.nodes.wait_until_ready().await;
        for authority in &authorities {
            site.wait_until_refused(authority).await;
        }
    }
}

impl Site {
    /// Starts an installation whose page is answered by another node than the one that has control.
    async fn start(binary: Binary) -> Self {
        let issuer = TokenIssuer::start().await;
        let mut nodes = ThreeNodes::start(binary, &issuer.settings()).await;
        let actions = format!("{}/actions", nodes.cluster.backend());
        let mine = json!({ "actions": [{ "name": "mine", "sql": MINE }] });
        let define = nodes
            .cluster
            .owner_request(nodes.node(0), Method::PUT, &actions);
        define.json(&mine).answer().await.expect(200);
        let promoted = nodes.cluster.promote(nodes.node(1)).await;
        assert!(promoted.success, "{promoted:?}");
        nodes.kill(0).await;
        nodes.restart().await;
        let site = Self { nodes, issuer };
        let control = site.nodes.control().await;
        let user = site.user(control, "alice").await;
        let add = [
            "workspace",
            "member",
            "add",
            "acme",
            user.as_str(),
            "--role",
            "owner",
        ];
        let data = &site.nodes.node(control).data;
        let added = site.nodes.cluster.run(data, &add).await;
        assert!(added.success, "{added:?}");
        // Nobody has the database, and who is asked first takes it.
        let other = site.nodes.node((control + 1) % NODES);
        other.add((1, 1)).await.expect(200);
        site
    }

    /// Returns the id of a user, who is created by the first call.
    async fn user(&self, at: usize, subject: &str) -> String {
        let token = self.issuer.token_now(subject);
        let me = self
            .nodes
            .request(self.nodes.node(at), Method::GET, "/api/v1/me");
        let me = me.bearer_auth(token).answer().await.expect(200).json();
        me["user_id"].as_str().unwrap().to_owned()
    }

    /// Returns a request of an owner of the workspace.
    fn owner(&self, at: usize, method: Method, path: &str) -> RequestBuilder {
        let request = self.nodes.request(self.nodes.node(at), method, path);
        request.bearer_auth(self.issuer.token_now("alice"))
    }

    /// Makes a key, a member and a session, at the node that has control.
    async fn grant(&self, control: usize, round: usize) -> [Authority; 3] {
        let viewer = json!({ "role": "viewer" });
        let made = self.owner(control, Method::POST, KEYS).json(&viewer);
        let made = made.answer().await.expect(201).json();
        let key = Authority::Key {
            credential: made["credential"].as_str().unwrap().to_owned(),
            path: format!("{KEYS}/{}", made["key_id"].as_str().unwrap()),
        };
        let subject = format!("bob-{round}");
        let user = self.user(control, &subject).await;
        let member = json!({ "user_id": user, "role": "viewer" });
        let added = self.owner(control, Method::POST, MEMBERS).json(&member);
        added.answer().await.expect(201);
        let member = Authority::Member {
            token: self.issuer.token_now(&subject),
            path: format!("{MEMBERS}/{user}"),
        };
        [key, member, self.sign_in(control).await]
    }

    /// Signs a visitor in to the page.
    async fn sign_in(&self, at: usize) -> Authority {
        let mut browser = Browser::new(self.nodes.node(at).process.address());
        let login = format!("{ORIGIN}/room/auth/login");
        let asked = browser.get(&login).await.expect(302);
        let asked: url::Url = location(&login, &asked).parse().unwrap();
        let value = |wanted: &str| {
            let mut pairs = asked.query_pairs();
            let found = pairs.find(|(name, _)| name == wanted);
            found.unwrap().1.into_owned()
        };
        let (nonce, state) = (value("nonce"), value("state"));
        let back = format!("{ORIGIN}/_svc/auth/callback/acme?code={nonce}&state={state}");
        let returned = browser.get(&back).await.expect(302);
        let complete = location(&back, &returned);
        let completed = browser.get(&complete).await.expect(302);
        let end = location(&complete, &completed);
        assert_eq!(end, format!("{ORIGIN}/room"), "signed in");
        let cookie = browser.cookie(&format!("{ORIGIN}/room/api/op"));
        Authority::Session {
            cookie: cookie.unwrap(),
        }
    }

    /// Returns a request to a node that this authority is needed for.
    fn request(&self, authority: &Authority, at: usize) -> RequestBuilder {
        let node = self.nodes.node(at);
        let detail = || {
            let path = format!("/api/v1/projects{}", self.nodes.cluster.backend());
            self.nodes.request(node, Method::GET, &path)
        };
        match authority {
            Authority::Key { credential, .. } => detail().bearer_auth(credential),
            Authority::Member { token, .. } => detail().bearer_auth(token),
            Authority::Session { cookie } => {
                let call = self.nodes.request(node, Method::POST, "/room/api/op");
                let call = call.header("origin", ORIGIN).header("cookie", cookie);
                call.json(&json!({ "action": "mine" }))
            }
        }
    }

    /// Waits until every node takes an authority. None refuses it.
    async fn wait_until_taken(&self, authority: &Authority) {
        for at in 0..NODES {
            wait_until("an authority that is taken", async || {
                let answer = self.request(authority, at).answer().await;
                let is_right = matches!(answer.status, 200 | 503);
                assert!(is_right, "{authority:?} at n{}: {answer:?}", at + 1);
                (answer.status == 200).then_some(())
            })
            .await;
        }
    }

    /// Waits until every node refuses an authority. None takes it.
    async fn wait_until_refused(&self, authority: &Authority) {
        for at in 0..NODES {
            wait_until("an authority that is refused", async || {
                let answer = self.request(authority, at).answer().await;
                let is_right = matches!(answer.status, 401 | 403 | 503);
                assert!(is_right, "{authority:?} at n{}: {answer:?}", at + 1);
                (answer.status != 503).then_some(())
            })
            .await;
        }
    }

    /// Ends an authority at the node that has control. Returns when that was answered.
    async fn end(&self, authority: &Authority, control: usize) -> Instant {
        wait_until("an authority to end", async || {
            let end = match authority {
                Authority::Key { path, .. } | Authority::Member { path, .. } => {
                    self.owner(control, Method::DELETE, path)
                }
                Authority::Session { cookie } => {
                    let node = self.nodes.node(control);
                    let end = self.nodes.request(node, Method::POST, "/room/auth/logout");
                    end.header("origin", ORIGIN).header("cookie", cookie)
                }
            };
            let answer = end.answer().await;
            // What was interrupted may be done.
            let is_right = matches!(answer.status, 204 | 404 | 503);
            assert!(is_right, "{authority:?}: {answer:?}");
            (answer.status != 503).then(Instant::now)
        })
        .await
    }

    /// Ends an authority, and asks all nodes. Returns what is wrong.
    async fn end_and_watch(
        &self,
        authority: &Authority,
        control: usize,
        cut: Option<usize>,
    ) -> Vec<String> {
        let ended = self.end(authority, control).await;
        let watching = (0..NODES).map(|at| {
            // Nobody hears anything from a node that has control and is cut off.
            let is_cut = cut.is_some_and(|cut| cut == at || cut == control);
            async move {
                let mut faults = Vec::new();
                while ended.elapsed() < WATCHED {
                    let attempt = Attempt::make(self.request(authority, at), ended, is_cut).await;
                    let fault = attempt.fault();
                    faults.extend(fault.map(|it| format!("{authority:?} at n{}: {it}", at + 1)));
                    sleep(PAUSE).await;
                }
                faults
            }
        });
        join_all(watching).await.concat()
    }
}
