//! A browser as far as sign-in needs one: cookies by host and path, and steps from one address to the next.

use std::net::SocketAddr;

use http::{HeaderMap, Method};

use crate::answer::{Answer, ReadAnswer};
use crate::wait::DEADLINE;

/// A cookie, as a server has set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCookie {
    /// Host and port of the server that set it.
    pub host: String,
    /// Attribute `Path`.
    pub path: String,
    /// Name of the cookie.
    pub name: String,
    /// Value of the cookie.
    pub value: String,
    /// Full `Set-Cookie` line.
    pub line: String,
}

/// An HTTP client with cookies, which resolves every name to this machine.
#[derive(Clone, Debug)]
pub struct Browser {
    client: reqwest::Client,
    /// Stored cookies, newest last.
    pub cookies: Vec<StoredCookie>,
    address: SocketAddr,
}

/// Splits a URL into host and path.
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
    /// Creates a browser without cookies. URLs without a port lead to `address`.
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

    /// Returns the `Cookie` header for a URL.
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

    /// Sends a request with the cookies for its URL; stores the cookies of the answer.
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

    /// Sends a GET, as for a URL that was typed.
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

    /// Follows redirects from the answer of `url`; returns the last URL and its answer.
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

/// Returns the absolute URL of a redirect.
///
/// # Panics
/// When the answer is no redirect.
pub fn location(from: &str, answer: &Answer) -> String {
    let to = answer.header("location").expect("a redirect");
    if to.starts_with('/') {
        let (host, _) = split_url(from);
        return format!("{}://{host}{to}", from.split_once("://").unwrap().0);
    }
    to.to_owned()
}
