//! A browser as far as sign-in needs one: cookies by host and path, and steps from one address to the next.

use std::net::SocketAddr;

use http::{HeaderMap, Method};

use crate::answer::{Answer, ReadAnswer};
use crate::wait::DEADLINE;

/// A cookie that was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCookie {
    /// The host that set it, with its port.
    pub host: String,
    /// The path that it is for.
    pub path: String,
    /// Name of the cookie.
    pub name: String,
    /// Value of the cookie.
    pub value: String,
    /// The line that set it.
    pub line: String,
}

/// A browser whose every name leads to this machine.
#[derive(Clone, Debug)]
pub struct Browser {
    client: reqwest::Client,
    /// Cookies that it was given, newest last.
    pub cookies: Vec<StoredCookie>,
    address: SocketAddr,
}

/// An address taken apart.
fn split_url(url: &str) -> (String, String) {
    let rest = url.split_once("://").expect("an absolute URL").1;
    let rest = rest.split('#').next().unwrap();
    match rest.find(['/', '?']) {
        Some(at) if rest[at..].starts_with('/') => (rest[..at].to_owned(), rest[at..].to_owned()),
        Some(at) => (rest[..at].to_owned(), format!("/{}", &rest[at..])),
        None => (rest.to_owned(), "/".to_owned()),
    }
}

impl Browser {
    /// A browser without cookies; whatever has no port of its own is asked at `address`.
    pub fn new(address: SocketAddr) -> Self {
        let client = crate::http_client()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(DEADLINE)
            .no_proxy()
            .build()
            .unwrap();
        Self {
            client,
            cookies: Vec::new(),
            address,
        }
    }

    /// The value of its `Cookie` for an address.
    pub fn cookie(&self, url: &str) -> Option<String> {
        let (host, path) = split_url(url);
        let path = path.split('?').next().unwrap().to_owned();
        let fits = |cookie: &&StoredCookie| {
            let below = path.strip_prefix(&cookie.path);
            cookie.host == host
                && below.is_some_and(|rest| {
                    rest.is_empty() || rest.starts_with('/') || cookie.path.ends_with('/')
                })
        };
        let sent = self.cookies.iter().filter(fits);
        let sent: Vec<_> = sent
            .map(|one| format!("{}={}", one.name, one.value))
            .collect();
        (!sent.is_empty()).then(|| sent.join("; "))
    }

    /// Asks an address, with its cookies and some headers.
    pub async fn send_request(
        &mut self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Option<String>,
    ) -> Answer {
        let (host, path) = split_url(url);
        // Names below localhost lead to this machine, as in browsers.
        let port = host
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse().ok());
        let address = SocketAddr::new(self.address.ip(), port.unwrap_or(self.address.port()));
        let mut request = self
            .client
            .request(method, format!("http://{address}{path}"))
            .header("host", &host)
            .headers(headers);
        if let Some(cookie) = self.cookie(url) {
            request = request.header("cookie", cookie);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let answer = request.answer().await;
        for line in answer.headers.get_all("set-cookie") {
            self.store_cookie(&host, line.to_str().unwrap());
        }
        answer
    }

    fn store_cookie(&mut self, host: &str, line: &str) {
        let mut attributes = line.split(';').map(str::trim);
        let (name, value) = attributes.next().unwrap().split_once('=').unwrap();
        let attribute = |wanted: &str| {
            let mut all = line.split(';').map(str::trim);
            all.find_map(|one| one.strip_prefix(wanted).map(str::to_owned))
        };
        let path = attribute("Path=").expect("a cookie with a path");
        let same = |one: &StoredCookie| {
            (one.host.as_str(), one.path.as_str(), one.name.as_str()) == (host, path.as_str(), name)
        };
        self.cookies.retain(|one| !same(one));
        if attribute("Max-Age=").as_deref() != Some("0") {
            self.cookies.push(StoredCookie {
                host: host.to_owned(),
                path: path.clone(),
                name: name.to_owned(),
                value: value.to_owned(),
                line: line.to_owned(),
            });
        }
    }

    /// A GET, as of an address that was typed.
    pub async fn get(&mut self, url: &str) -> Answer {
        self.send_request(Method::GET, url, HeaderMap::new(), None)
            .await
    }

    /// Sends a form.
    pub async fn submit(&mut self, url: &str, form: &str) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert(
            "content-type",
            "application/x-www-form-urlencoded".parse().unwrap(),
        );
        self.send_request(Method::POST, url, headers, Some(form.to_owned()))
            .await
    }

    /// Follows redirects from an answer to a GET of `url`; returns where they end, and what is there.
    pub async fn follow(&mut self, url: &str, mut answer: Answer) -> (String, Answer) {
        let mut at = url.to_owned();
        for _ in 0..20 {
            if !(300..400).contains(&answer.status) {
                return (at, answer);
            }
            at = location(&at, &answer);
            answer = self.get(&at).await;
        }
        panic!("redirects without end at {at}");
    }

    /// Opens an address, and follows its redirects.
    pub async fn open(&mut self, url: &str) -> (String, Answer) {
        let answer = self.get(url).await;
        self.follow(url, answer).await
    }
}

/// Where an answer leads.
///
/// # Panics
/// When it leads nowhere.
pub fn location(from: &str, answer: &Answer) -> String {
    let to = answer.header("location").expect("a redirect");
    if to.starts_with('/') {
        let (host, _) = split_url(from);
        return format!("{}://{host}{to}", from.split_once("://").unwrap().0);
    }
    to.to_owned()
}
