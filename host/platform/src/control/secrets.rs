//! The installation's own keys: generated at the first start, stored in the control database, never shown.

use ring::hmac;
use rusqlite::{OptionalExtension, params};

use super::{ControlDatabase, Error, Tx};
use svc_base::random::Random;

macro_rules! secrets {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// Keys for what this installation signs or compares.
        #[derive(Clone, Debug)]
        pub struct InstallationSecrets {
            $($(#[$doc])* pub $name: hmac::Key,)+
        }

        impl InstallationSecrets {
            /// Reads the keys, and generates those that are missing.
            ///
            /// # Errors
            /// When the control database cannot be written or there is no randomness.
            pub async fn load(control: &ControlDatabase, random: &Random) -> anyhow::Result<Self> {
                $(let $name: [u8; 32] = random.bytes()?;)+
                let loaded = control.write(move |tx| {
                    Ok::<_, Error>(Self {
                        $($name: load_or_create_key(tx, stringify!($name), &$name)?,)+
                    })
                });
                Ok(loaded.await?)
            }
        }
    };
}

secrets! {
    /// Signs the cookies that unlock protected pages.
    unlock,
    /// Compares the bodies of requests with one idempotency key, without keeping them.
    idempotency,
    /// Derives the key that encrypts the state of sign-ins in progress.
    sign_in,
    /// Pseudonymizes the holders of quick shares, for counting.
    holders,
}

fn load_or_create_key(tx: &Tx<'_>, name: &str, fresh: &[u8; 32]) -> Result<hmac::Key, Error> {
    let held: Option<Vec<u8>> = tx
        .query_row("SELECT value FROM secrets WHERE name = ?1", [name], |row| {
            row.get(0)
        })
        .optional()?;
    if held.is_none() {
        tx.execute(
            "INSERT INTO secrets (name, value) VALUES (?1, ?2)",
            params![name, fresh],
        )?;
    }
    Ok(hmac::Key::new(
        hmac::HMAC_SHA256,
        held.as_deref().unwrap_or(fresh),
    ))
}
