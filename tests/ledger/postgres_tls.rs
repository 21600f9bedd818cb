//! The way to a server of PostgreSQL: TLS, certificates and passwords, as the URL has them.

use svc_ledger::{Ledger as _, LedgerError, PostgresLedger};
use svc_tests::postgres::Postgres;
use svc_tests::tls::CertificateFiles;

/// How a login ends.
#[derive(Clone, Copy)]
enum Login {
    Done,
    /// The server does not let this user in.
    Refused,
    /// The server is not the one that the URL asks for.
    NotReached,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_reached_by_tls_as_the_url_asks_for_it() {
    let mut servers = Postgres::start().await;
    // An address of the loopback interface that no other server has.
    let [_, _, third, fourth] = std::process::id().to_be_bytes();
    let address = format!("127.83.{third}.{}", fourth.max(1));
    let (its, another) = (
        CertificateFiles::new(&[address.as_str(), "ledger.example"]),
        CertificateFiles::new(&[address.as_str()]),
    );
    servers.run_with_tls(&address, &its).await;
    let file = |certificate: &CertificateFiles| {
        let path = certificate.cert().to_str().unwrap().to_owned();
        path.replace('/', "%2F")
    };
    let (its, another) = (file(&its), file(&another));
    let bound = format!("sslmode=verify-full&sslrootcert={its}&channel_binding=require");
    let strange = format!("sslmode=require&sslrootcert={another}");
    let named = format!("sslmode=require&sslrootcert={its}&hostaddr={address}");
    let numeric = format!("hostaddr={address}");
    for (password, host, query, expected) in [
        ("secret", address.as_str(), "", Login::Done),
        ("secret", address.as_str(), bound.as_str(), Login::Done),
        ("wrong", address.as_str(), bound.as_str(), Login::Refused),
        (
            "secret",
            address.as_str(),
            strange.as_str(),
            Login::NotReached,
        ),
        (
            "secret",
            address.as_str(),
            "sslmode=disable",
            Login::Refused,
        ),
        // A certificate is of names: that of another name is refused, whoever has signed it.
        ("secret", "ledger.example", named.as_str(), Login::Done),
        ("secret", "other.example", named.as_str(), Login::NotReached),
        ("secret", "", named.as_str(), Login::Done),
        ("secret", "", numeric.as_str(), Login::Done),
    ] {
        let url = format!("postgresql://postgres:{password}@{host}/postgres?{query}");
        let found = PostgresLedger::new(&url, 1).unwrap().installation().await;
        let is_as_expected = match expected {
            Login::Done => found == Ok(None),
            Login::Refused => matches!(found, Err(LedgerError::Refused(_))),
            Login::NotReached => matches!(found, Err(LedgerError::Unavailable(_))),
        };
        assert!(is_as_expected, "{host} {query}: {found:?}");
    }
}
