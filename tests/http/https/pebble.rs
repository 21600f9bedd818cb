//! Pebble, the test server of Let's Encrypt, with names that lead to a server under test.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::json;
use svc_tests::tls::CertificateFiles;
use svc_tests::wait_until;
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;

/// Account that an authority may want, and its key in base64url.
pub(super) const ACCOUNT: (&str, &str) = ("ours", "c2VjcmV0cyBvZiB0aGUgYXV0aG9yaXR5IGFuZCBvdXJz");
/// Name that it issues no certificate for.
pub(super) const BLOCKED: &str = "www.blocked.com";
/// Program, which `.ci/run` installs.
const PROGRAM: &str = "pebble";
/// Runs it until it ends or standard input does: a test that is killed leaves nothing behind.
const GUARD: &str =
    r#"exec 3<&0; "$@" & p=$!; { cat <&3 >/dev/null; kill $p; } 2>/dev/null & wait $p"#;
/// How long the certificates are valid that it issues: five years, leap days aside.
pub(super) const CERTIFICATE_DAYS: u64 = 5 * 365;

/// A port of the network that leads to a listener of the server, or nowhere.
#[derive(Clone, Debug)]
struct NetworkPort {
    address: SocketAddr,
    behind: Arc<Mutex<Option<SocketAddr>>>,
    /// Whether connections wait before they are led on.
    is_held: Arc<watch::Sender<bool>>,
    /// Path of the last request of plain HTTP.
    path: Arc<Mutex<Option<String>>>,
}

impl NetworkPort {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = Self {
            address: listener.local_addr().unwrap(),
            behind: Arc::default(),
            is_held: Arc::new(watch::Sender::new(false)),
            path: Arc::default(),
        };
        let opened = port.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = *opened.behind.lock().unwrap();
                let Some(server) = server else { continue };
                tokio::spawn(opened.clone().lead(client, server));
            }
        });
        port
    }

    async fn lead(self, mut client: TcpStream, server: SocketAddr) -> std::io::Result<()> {
        let mut held = self.is_held.subscribe();
        if *held.borrow() {
            let mut head = [0; 1_024];
            let length = client.peek(&mut head).await?;
            let head = String::from_utf8_lossy(&head[..length]);
            let path = head.split(' ').nth(1).map(str::to_owned);
            *self.path.lock().unwrap() = path;
            // The sender is here, so it is not gone.
            let _ = held.wait_for(|held| !*held).await;
        }
        let mut server = TcpStream::connect(server).await?;
        copy_bidirectional(&mut client, &mut server).await?;
        Ok(())
    }

    fn lead_to(&self, server: Option<SocketAddr>) {
        *self.behind.lock().unwrap() = server;
    }
}

/// The network of a test: every name leads to one server, unless it is said not to.
#[derive(Debug)]
pub(super) struct TestNetwork {
    /// Where names lead to.
    pub(super) front: SocketAddr,
    visitors: NetworkPort,
    /// Ports of the authority's challenges.
    handshakes: NetworkPort,
    plain: NetworkPort,
    /// Start of the names that do not exist.
    missing: Arc<Mutex<Option<&'static str>>>,
    dns: SocketAddr,
}

impl TestNetwork {
    pub(super) async fn new() -> Self {
        let dns = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let visitors = NetworkPort::open().await;
        let network = Self {
            front: visitors.address,
            visitors,
            handshakes: NetworkPort::open().await,
            plain: NetworkPort::open().await,
            missing: Arc::default(),
            dns: dns.local_addr().unwrap(),
        };
        let missing = Arc::clone(&network.missing);
        tokio::spawn(async move {
            let mut question = [0; 512];
            while let Ok((length, from)) = dns.recv_from(&mut question).await {
                let missing = *missing.lock().unwrap();
                if let Some(answer) = resolve(&question[..length], missing) {
                    dns.send_to(&answer, from).await.unwrap();
                }
            }
        });
        network
    }

    /// Leads to a server from now on.
    pub(super) fn route_names_to(&self, server: SocketAddr) {
        self.visitors.lead_to(Some(server));
        self.handshakes.lead_to(Some(server));
    }

    /// Leads plain HTTP to a listener of a server.
    pub(super) fn route_plain_to(&self, listener: SocketAddr) {
        self.plain.lead_to(Some(listener));
    }

    /// Has the authority's handshakes lead nowhere, as where another program ends those of visitors.
    pub(super) fn close_handshakes(&self) {
        self.handshakes.lead_to(None);
    }

    /// Has the authority's requests of plain HTTP wait, or go on.
    pub(super) fn hold_plain(&self, is_held: bool) {
        self.plain.is_held.send_replace(is_held);
    }

    /// Returns the path of a request of plain HTTP that was held.
    pub(super) fn plain_path(&self) -> Option<String> {
        self.plain.path.lock().unwrap().clone()
    }

    /// Has names that begin so lead nowhere.
    pub(super) fn drop_names(&self, start: Option<&'static str>) {
        *self.missing.lock().unwrap() = start;
    }
}

/// Answers a question for an address of IPv4 with this machine's, and others with nothing (RFC 1035, section 4).
fn resolve(question: &[u8], missing: Option<&str>) -> Option<Vec<u8>> {
    let name = question.get(12..)?;
    let labels = name.iter().position(|byte| *byte == 0)?;
    let asked = question.get(12..12 + labels + 5)?;
    let first = name.get(1..=usize::from(*name.first()?))?;
    let is_missing = missing.is_some_and(|start| first.starts_with(start.as_bytes()));
    let is_ipv4 = asked[labels + 1..labels + 3] == [0, 1];
    let has_answer = is_ipv4 && !is_missing;
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, if is_missing { 0x83 } else { 0x80 }, 0, 1]);
    answer.extend([0, u8::from(has_answer), 0, 0, 0, 0]);
    answer.extend(asked);
    if has_answer {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
        answer.extend(Ipv4Addr::LOCALHOST.octets());
    }
    Some(answer)
}

/// A running Pebble. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Pebble {
    child: Child,
    /// Standard input, whose end is its end.
    stdin: Option<ChildStdin>,
    said: Arc<Mutex<String>>,
    /// Pair that it speaks HTTPS with.
    pub(super) own: CertificateFiles,
    address: SocketAddr,
    management: SocketAddr,
    _directory: TempDir,
}

impl Pebble {
    /// Starts it for a world; `None` where it is not installed, which is said aloud.
    pub(super) async fn start(network: &TestNetwork) -> Option<Self> {
        Self::start_for(network, false).await
    }

    /// Starts it, and lets it want an account if it is to.
    pub(super) async fn start_for(network: &TestNetwork, wants_account: bool) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|folder| folder.join(PROGRAM).is_file()) {
            eprintln!("SKIPPED: {PROGRAM} is not installed (apt-get install {PROGRAM})");
            return None;
        }
        // A free port may be another's a moment later.
        for _ in 0..5 {
            if let Some(pebble) = Self::try_start(network, wants_account).await {
                return Some(pebble);
            }
        }
        panic!("{PROGRAM} does not start");
    }

    async fn try_start(network: &TestNetwork, wants_account: bool) -> Option<Self> {
        let own = CertificateFiles::new(&["localhost", "127.0.0.1"]);
        let ports = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let [address, management] = ports.map(|port| port.local_addr().unwrap());
        let config = json!({ "pebble": {
            "listenAddress": address.to_string(),
            "managementListenAddress": management.to_string(),
            "certificate": own.cert(),
            "privateKey": own.key(),
            "httpPort": network.plain.address.port(),
            "tlsPort": network.handshakes.address.port(),
            "domainBlocklist": [BLOCKED],
            "ocspResponderURL": "",
            "externalAccountBindingRequired": wants_account,
            "externalAccountMACKeys": { (ACCOUNT.0): ACCOUNT.1 },
        }});
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("pebble.json");
        std::fs::write(&file, config.to_string()).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "sh", PROGRAM]);
        command.arg("-config").arg(file).arg("-strict");
        command.arg("-dnsserver").arg(network.dns.to_string());
        command.env("PEBBLE_VA_NOSLEEP", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let (hears, stdout) = (Arc::clone(&said), child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let mut said = hears.lock().unwrap();
                said.push_str(&line);
                said.push('\n');
            }
        });
        let mut pebble = Self {
            stdin: child.stdin.take(),
            child,
            said,
            own,
            address,
            management,
            _directory: directory,
        };
        let client = pebble.client();
        let answers = wait_until("Pebble to answer", async || {
            if pebble.child.try_wait().unwrap().is_some() {
                return Some(false);
            }
            client
                .get(pebble.directory())
                .send()
                .await
                .ok()
                .map(|_| true)
        });
        answers.await.then_some(pebble)
    }

    fn client(&self) -> reqwest::Client {
        let root = reqwest::Certificate::from_pem(self.own.pem().as_bytes()).unwrap();
        let client = svc_tests::http_client().no_proxy().tls_certs_only([root]);
        client.build().unwrap()
    }

    /// The URL of its directory.
    pub(super) fn directory(&self) -> String {
        format!("https://{}/dir", self.address)
    }

    /// The certificate that those are believed by which it issues.
    pub(super) async fn root(&self) -> String {
        let url = format!("https://{}/roots/0", self.management);
        let answer = self.client().get(url).send().await.unwrap();
        answer.text().await.unwrap()
    }

    /// How many certificates were asked for so far.
    pub(super) fn orders(&self) -> usize {
        let said = self.said.lock().unwrap();
        said.lines()
            .filter(|line| line.contains("orders in the db"))
            .count()
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // The process may have ended already.
        let _ = self.child.wait();
    }
}
