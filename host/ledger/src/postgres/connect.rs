//! A connection to the server that takes writes: how it is found, and what an answer means, or one that does not come.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join;
use futures_util::stream::FuturesUnordered;
use svc_base::sync;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tokio_postgres::error::{DbError, Severity};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Row, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{self, Address};
use super::{text, tls};
use crate::LedgerError;

/// Parameter of a statement, with its type.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Time limit for finding a server, with everything that comes before the first statement.
const OPEN_TIMEOUT: Duration = Duration::from_secs(3);

/// Undoes what an operator may have set for the role or the database: no statement is given up, a statement sees what was committed
/// before it began, and the one warning that counts arrives. It is written so that older servers pass over what they do not know.
///
/// Only a wait for a lock of somebody else ends, with nothing done: who has it may be paused. It ends soon enough that the beats behind
/// it come in time. For the same reason the server gives up a client that takes nothing and says nothing, as clients do a server.
const SESSION: &str = "SELECT set_config(name, value, false) FROM pg_settings JOIN (VALUES \
    ('statement_timeout', '0'), ('lock_timeout', '800ms'), ('transaction_timeout', '0'), \
    ('idle_session_timeout', '0'), ('idle_in_transaction_session_timeout', '0'), \
    ('default_transaction_isolation', 'read committed'), ('client_min_messages', 'warning'), \
    ('tcp_keepalives_idle', '2'), ('tcp_keepalives_interval', '2'), ('tcp_keepalives_count', '2'), \
    ('tcp_user_timeout', '5000')\
    ) AS wanted (name, value) USING (name)";

/// Time after which a request that waits has the other servers asked, and once more after each such time. A run whose server is away
/// must find the next one before others take it for dead.
const LOOK_AROUND: Duration = Duration::from_secs(1);

/// Tells a server from all others, and from itself before a restart.
const SERVER_ID: &str = "SELECT extract(epoch FROM pg_postmaster_start_time())::text";

/// Looks once more whether the server waits for its standbys.
const CHECK_SYNCED: &str = "SELECT svc.check_synced($1)";

/// Servers of the ledger.
pub(super) struct Servers {
    address: Address,
    tls: MakeRustlsConnect,
    /// Server that was left because another one took writes, as [`SERVER_ID`] tells it.
    left: std::sync::Mutex<Option<String>>,
}

impl Servers {
    /// Reads the URL. Nothing is connected.
    ///
    /// # Errors
    /// A text that says what is wrong with it.
    pub(super) fn new(url: &str) -> Result<Self, String> {
        let address = address::parse(url)?;
        let tls = tls::connector(&address.trust)?;
        let left = std::sync::Mutex::default();
        Ok(Self { address, tls, left })
    }

    /// Connects to a server that takes writes, but not to the one that was left for another: it may be the nearest one, take writes
    /// still, and never acknowledge any.
    async fn open(&self) -> Result<ServerConnection, LedgerError> {
        let left = sync::lock(&self.left).clone();
        let is_wanted = |found: &ServerConnection| left.as_ref() != Some(&found.server);
        let found = self.find(&is_wanted).await;
        if found.is_err() {
            // It may be the only one by now.
            *sync::lock(&self.left) = None;
        }
        found
    }

    /// Connects to the first server that answers, takes writes and is wanted. While one of them says nothing, all are asked again: a
    /// standby that has refused may have been promoted since.
    async fn find(&self, is_wanted: IsWanted<'_>) -> Result<ServerConnection, LedgerError> {
        let found = async {
            let mut rounds = FuturesUnordered::new();
            rounds.push(self.ask_all(is_wanted));
            loop {
                tokio::select! {
                    Some(found) = rounds.next() => return found,
                    () = tokio::time::sleep(LOOK_AROUND) => rounds.push(self.ask_all(is_wanted)),
                }
            }
        };
        match tokio::time::timeout(OPEN_TIMEOUT, found).await {
            Ok(Ok(open)) => Ok(open),
            Ok(Err(refusals)) => Err(all_refused(refusals)),
            Err(_) => {
                let why = "no server that takes writes has answered in time";
                Err(LedgerError::Unavailable(why.to_owned()))
            }
        }
    }

    /// Asks all servers at once: one that is away costs no time.
    async fn ask_all(&self, is_wanted: IsWanted<'_>) -> Opened {
        let attempts = FuturesUnordered::new();
        for (name, server) in &self.address.servers {
            attempts.push(self.open_server(name, server, is_wanted));
        }
        first_opened(attempts).await
    }

    /// Connects to a server, whose name may have several addresses.
    async fn open_server(&self, name: &str, server: &Config, is_wanted: IsWanted<'_>) -> Opened {
        let addresses = address::resolve(server).await;
        let addresses = addresses.map_err(|error| vec![Refusal::new(name, &error)])?;
        self.open_any(name, &addresses, is_wanted).await
    }

    /// Asks all addresses of a server at once: they may be those of several machines.
    async fn open_any(&self, name: &str, addresses: &[Config], is_wanted: IsWanted<'_>) -> Opened {
        let attempts = FuturesUnordered::new();
        for address in addresses {
            attempts.push(self.open_one(name, address, is_wanted));
        }
        first_opened(attempts).await
    }

    async fn open_one(&self, name: &str, server: &Config, is_wanted: IsWanted<'_>) -> Opened {
        let said = |error: tokio_postgres::Error| {
            let is_login = is_login_refusal(&error);
            vec![Refusal {
                is_login,
                ..Refusal::new(name, &text(&error))
            }]
        };
        let connected = Box::pin(server.connect(self.tls.clone())).await;
        let (client, connection) = connected.map_err(said)?;
        let mut open = ServerConnection {
            client,
            driver: tokio::spawn(move_bytes(connection)),
            abandoned: AtomicBool::new(false),
            server: String::new(),
            looking: Mutex::new(()),
        };
        open.client.batch_execute(SESSION).await.map_err(said)?;
        let rows = open.client.query_typed(SERVER_ID, &[]).await;
        let rows = rows.map_err(said)?;
        if let Some(row) = rows.first() {
            open.server = row.try_get(0).map_err(said)?;
        }
        match is_wanted(&open) {
            true => Ok(open),
            false => Err(vec![Refusal::new(name, &"another server has replaced it")]),
        }
    }

    /// Ends when another server than that of a connection takes writes. One that hangs, and whose standby goes on in its place,
    /// would have its callers wait forever; one that waits for its standbys is waited for.
    async fn replaced(&self, open: &ServerConnection) {
        let mut looks = tokio::time::interval(LOOK_AROUND);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first one would be at once.
        looks.tick().await;
        looks.tick().await;
        // One request looks for all that wait.
        let _turn = open.looking.lock().await;
        loop {
            let is_other = |found: &ServerConnection| found.server != open.server;
            if self.find(&is_other).await.is_ok() {
                *sync::lock(&self.left) = Some(open.server.clone());
                return;
            }
            looks.tick().await;
        }
    }
}

/// Whether a connection is to the server that is looked for.
type IsWanted<'w> = &'w (dyn Fn(&ServerConnection) -> bool + Sync);

/// A connection, or what each server has said instead.
type Opened = Result<ServerConnection, Vec<Refusal>>;

/// Answer of a server, or of the way to it, in place of a connection.
#[derive(Debug)]
struct Refusal {
    said: String,
    /// Whether the server takes the role, its password or the database for wrong.
    is_login: bool,
}

impl Refusal {
    fn new(server: &str, why: &dyn fmt::Display) -> Self {
        Self {
            said: format!("{server}: {why}"),
            is_login: false,
        }
    }
}

/// Returns the error of a ledger whose servers have all refused. If the login is wrong at each, waiting does not help.
fn all_refused(refusals: Vec<Refusal>) -> LedgerError {
    let is_login = !refusals.is_empty() && refusals.iter().all(|refusal| refusal.is_login);
    let said: Vec<String> = refusals.into_iter().map(|refusal| refusal.said).collect();
    match is_login {
        true => LedgerError::Refused(said.join("; ")),
        false => LedgerError::Unavailable(said.join("; ")),
    }
}

/// Whether an error says that the login is wrong: an invalid authorization (class 28), no such database, or no password for a server that
/// asks for one, which the library says itself.
fn is_login_refusal(error: &tokio_postgres::Error) -> bool {
    match error.as_db_error() {
        Some(said) => said.code().code().starts_with("28") || said.code().code() == "3D000",
        None => text(error).contains("password missing"),
    }
}

/// Returns the first attempt that succeeds, or what all of them say.
async fn first_opened(mut attempts: FuturesUnordered<impl Future<Output = Opened>>) -> Opened {
    let mut refusals = Vec::new();
    while let Some(attempt) = attempts.next().await {
        match attempt {
            Ok(open) => return Ok(open),
            Err(refused) => refusals.extend(refused),
        }
    }
    Err(refusals)
}

/// Moves bytes until the connection ends. It ends the connection itself when the server says that a commit was not replicated: the
/// server goes on to answer as if it were, and a request whose connection ends is unknown.
async fn move_bytes<S>(mut connection: Connection<Socket, S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
        match message {
            AsyncMessage::Notice(notice) if is_unreplicated(&notice) => return,
            _ => {}
        }
    }
}

/// Whether a warning says that the wait for the standbys was cut. Its text is in the server's language; the name of the server's
/// function is not, and a pooler that leaves it out is not believed.
fn is_unreplicated(notice: &DbError) -> bool {
    notice.parsed_severity() == Some(Severity::Warning)
        && notice
            .routine()
            .is_none_or(|routine| routine == "SyncRepWaitForLSN")
}

/// A connection, and the task that moves its bytes.
struct ServerConnection {
    client: Client,
    driver: JoinHandle<()>,
    abandoned: AtomicBool,
    /// Server, as [`SERVER_ID`] tells it.
    server: String,
    /// Held by the request that looks for another server.
    looking: Mutex<()>,
}

impl ServerConnection {
    fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.abandoned.load(Ordering::Relaxed)
    }

    /// Ends the connection at this end. The server goes on with what it was sent: nothing is taken back.
    fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
        self.driver.abort();
    }
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A request that waits for its answer. Dropping it ends the wait: the server may hang, so the next request gets a
/// connection of its own.
struct PendingRequest<'a>(Option<&'a ServerConnection>);

impl PendingRequest<'_> {
    fn answered(mut self) {
        self.0 = None;
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if let Some(open) = self.0 {
            open.abandon();
        }
    }
}

/// A connection that is made when it is needed, and made anew when it has ended.
pub(super) struct LedgerClient {
    servers: Arc<Servers>,
    state: Mutex<ClientState>,
    /// Number of attempts to connect that have failed.
    failures: AtomicU64,
}

#[derive(Default)]
struct ClientState {
    open: Option<Arc<ServerConnection>>,
    /// Error of the last attempt to connect.
    failure: Option<LedgerError>,
}

impl LedgerClient {
    /// Creates a client. Nothing is connected.
    pub(super) fn new(servers: &Arc<Servers>) -> Self {
        Self {
            servers: Arc::clone(servers),
            state: Mutex::default(),
            failures: AtomicU64::new(0),
        }
    }

    /// Connects, if it must. Callers share an attempt that fails: each waits for one at most, and not for those of all before it.
    async fn open(&self) -> Result<Arc<ServerConnection>, LedgerError> {
        let failures = self.failures.load(Ordering::Relaxed);
        let mut state = self.state.lock().await;
        if let Some(open) = state.open.as_ref().filter(|open| open.is_usable()) {
            return Ok(Arc::clone(open));
        }
        state.open = None;
        let has_failed = self.failures.load(Ordering::Relaxed) != failures;
        if let Some(failure) = state.failure.as_ref().filter(|_| has_failed) {
            return Err(failure.clone());
        }
        match self.servers.open().await {
            Ok(open) => {
                let open = Arc::new(open);
                state.open = Some(Arc::clone(&open));
                Ok(open)
            }
            Err(failure) => {
                state.failure = Some(failure.clone());
                self.failures.fetch_add(1, Ordering::Relaxed);
                Err(failure)
            }
        }
    }

    /// Runs one statement that changes something, and says when it is durable.
    pub(super) async fn write(
        &self,
        standbys: i32,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, LedgerError> {
        let open = self.open().await?;
        let done = open.client.query_typed(statement, parameters);
        self.answer(&open, standbys, done).await
    }

    /// Runs several statements as one transaction, and says when it is durable.
    pub(super) async fn write_all(
        &self,
        standbys: i32,
        statements: &str,
    ) -> Result<(), LedgerError> {
        let open = self.open().await?;
        let done = open.client.batch_execute(statements);
        self.answer(&open, standbys, done).await
    }

    /// Runs one statement that changes nothing. What it tells may be lost again.
    pub(super) async fn read(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, LedgerError> {
        let open = self.open().await?;
        let waiting = PendingRequest(Some(open.as_ref()));
        let read = open.client.query_typed(statement, parameters);
        let read = self.unless_replaced(&open, read).await;
        if read.is_ok() {
            waiting.answered();
        }
        let read = read.and_then(|read| read.map_err(|error| ledger_error(&open, &error)));
        read.map_err(|error| match error {
            LedgerError::Unknown(text) => LedgerError::Unavailable(text),
            refused => refused,
        })
    }

    /// Waits for an answer as long as no other server takes writes.
    async fn unless_replaced<T>(
        &self,
        open: &ServerConnection,
        answer: impl Future<Output = T>,
    ) -> Result<T, LedgerError> {
        tokio::select! {
            // The first is sent before anything else.
            biased;
            answer = answer => Ok(answer),
            () = self.servers.replaced(open) => {
                let why = "another server takes writes, and this one does not answer";
                Err(LedgerError::Unknown(why.to_owned()))
            }
        }
    }

    /// Waits for the answer to a request that changes something, and looks once more at what the server waits for: the look is sent
    /// right behind the request, on the same connection. A wait that was under way when `synchronous_standby_names` was emptied
    /// ends without a word.
    async fn answer<T>(
        &self,
        open: &ServerConnection,
        standbys: i32,
        done: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, LedgerError> {
        let waiting = PendingRequest(Some(open));
        let number: [Parameter<'_>; 1] = [(&standbys, Type::INT4)];
        // Of the two, the first is sent first.
        let both = join(done, open.client.query_typed(CHECK_SYNCED, &number));
        let (done, check) = self.unless_replaced(open, both).await?;
        waiting.answered();
        match (done, check) {
            (Ok(done), Ok(_)) => Ok(done),
            (Ok(_), Err(error)) => Err(LedgerError::Unknown(text(&error))),
            (Err(error), _) => Err(ledger_error(open, &error)),
        }
    }
}

/// Reads an error. One that the server says is the end of the transaction, without effect; after any other one, it may have been
/// done. What ends the connection, too, is such an other one: it may come after the commit. So is what somebody says who stands
/// between: that the connection is lost, or that nobody knows.
fn ledger_error(open: &ServerConnection, error: &tokio_postgres::Error) -> LedgerError {
    let said = error.as_db_error();
    let Some(said) = said.filter(|said| said.parsed_severity() == Some(Severity::Error)) else {
        return LedgerError::Unknown(text(error));
    };
    match said.code().code() {
        "SV001" => LedgerError::Fenced,
        "SV002" => LedgerError::Unsynced,
        "SV003" => LedgerError::NotNext,
        "SV004" => LedgerError::NotPlaced,
        // The schema, the table or the function is not there.
        "3F000" | "42P01" | "42883" => LedgerError::Unreadable(text(error)),
        code if code.starts_with("08") || code == "40003" => LedgerError::Unknown(text(error)),
        // The server takes no writes any more: another one does.
        "25006" => {
            open.abandon();
            LedgerError::Unavailable(text(error))
        }
        _ => LedgerError::Unavailable(text(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake_server::{FakeAnswer, FakeServer};
    use super::*;
    use tokio::net::TcpListener;

    fn client(server: &FakeServer) -> LedgerClient {
        LedgerClient::new(&Arc::new(Servers::new(&server.url()).unwrap()))
    }

    #[tokio::test]
    async fn an_error_after_which_nobody_knows_is_a_lost_answer() {
        for (code, is_lost) in [
            ("08006", true),
            ("08P01", true),
            ("40003", true),
            ("40001", false),
            ("53100", false),
        ] {
            let server = FakeServer::start("127.0.0.1:0", 0, FakeAnswer::Error(code)).await;
            let written = client(&server).write(1, "SELECT svc.trim()", &[]).await;
            let error = written.err().unwrap();
            assert_eq!(matches!(error, LedgerError::Unknown(_)), is_lost, "{error}");
        }
    }

    #[tokio::test]
    async fn a_login_that_every_server_refuses_is_not_tried_again() {
        let open = async |url: &str| Servers::new(url).unwrap().open().await.err().unwrap();
        for code in ["28P01", "28000", "3D000"] {
            let answer = FakeAnswer::NoLogin(code);
            let server = FakeServer::start("127.0.0.1:0", 0, answer).await;
            let refused = open(&server.url()).await;
            let is_refused =
                matches!(&refused, LedgerError::Refused(said) if said.contains("told to fail"));
            assert!(is_refused, "{refused}");
            // Another server may take writes soon.
            let starting = FakeServer::start("127.0.0.1:0", 0, FakeAnswer::NoLogin("57P03")).await;
            let both = [server.address(), starting.address()].map(|it| it.to_string());
            let url = format!("postgresql://svc@{}/svc?sslmode=disable", both.join(","));
            let refused = open(&url).await;
            assert!(matches!(refused, LedgerError::Unavailable(_)), "{refused}");
        }
    }

    #[tokio::test]
    async fn an_address_that_says_nothing_keeps_no_other_waiting() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let other = format!("127.0.0.2:{port}");
        let _server = FakeServer::start(&other, 0, FakeAnswer::Silence).await;
        let url = format!("postgresql://svc@pg.example:{port}/svc?sslmode=disable");
        let servers = Servers::new(&url).unwrap();
        let (name, server) = &servers.address.servers[0];
        let addresses = ["127.0.0.1", "127.0.0.2"].map(|address| address.parse().unwrap());
        let addresses = address::at_addresses(server, addresses);
        let is_any = |_: &ServerConnection| true;
        let opened = servers.open_any(name, &addresses, &is_any);
        let opened = tokio::time::timeout(OPEN_TIMEOUT, opened).await;
        assert!(opened.unwrap().is_ok());
    }

    #[tokio::test]
    async fn a_standby_is_asked_again_while_another_server_says_nothing() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent = silent.local_addr().unwrap();
        let promoted = FakeServer::start("127.0.0.1:0", 1, FakeAnswer::Silence).await;
        let promoted = promoted.address();
        let url = format!("postgresql://svc@{silent},{promoted}/svc?sslmode=disable");
        assert!(Servers::new(&url).unwrap().open().await.is_ok());
    }

    #[tokio::test]
    async fn requests_that_wait_look_for_another_server_together() {
        let server = FakeServer::start("127.0.0.1:0", 0, FakeAnswer::Silence).await;
        let client = client(&server);
        let read = || client.read("SELECT 1", &[]);
        let twice = async {
            // The first connection has the requests.
            while server.accepted() < 3 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            server.accepted()
        };
        tokio::select! {
            _ = join(read(), join(read(), read())) => panic!("no server answers"),
            accepted = twice => assert_eq!(accepted, 3),
        }
    }

    #[tokio::test]
    async fn callers_share_an_attempt_to_connect_that_fails() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepted = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&accepted);
        let server = tokio::spawn(async move {
            // Each connection ends at once.
            while listener.accept().await.is_ok() {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let url = format!("postgresql://svc@127.0.0.1:{port}/svc");
        let client = LedgerClient::new(&Arc::new(Servers::new(&url).unwrap()));
        for attempts in 1..=2 {
            let (one, (two, three)) = join(client.open(), join(client.open(), client.open())).await;
            for opened in [one, two, three] {
                assert!(matches!(opened, Err(LedgerError::Unavailable(_))));
            }
            assert_eq!(accepted.load(Ordering::Relaxed), attempts);
        }
        server.abort();
    }
}
