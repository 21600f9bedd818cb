//! The installation's own keys: generated at the first start, stored in the control database, never shown.

use ring::hmac;
use rusqlite::{Connection, OptionalExtension, params};

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

            /// Reads the keys, as a machine does that follows; `None` while the owner has not generated all of them. They never change, so
            /// it does not matter whether this machine is fresh.
            ///
            /// # Errors
            /// The control database's.
            pub async fn find(control: &ControlDatabase) -> Result<Option<Self>, Error> {
                let control = control.clone();
                let found = tokio::task::spawn_blocking(move || control.read_blocking(|c| {
                    $(let Some($name) = find_key(c, stringify!($name))? else {
                        return Ok(None);
                    };)+
                    Ok(Some(Self { $($name,)+ }))
                }));
                found.await.map_err(|_| Error::Panicked)?
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
    /// Derives the characters by which DNS proves that a domain is a project's.
    domains,
}

fn find_key(c: &Connection, name: &str) -> rusqlite::Result<Option<hmac::Key>> {
    let held: Option<Vec<u8>> = c
        .query_row("SELECT value FROM secrets WHERE name = ?1", [name], |row| {
            row.get(0)
        })
        .optional()?;
    Ok(held.map(|held| hmac::Key::new(hmac::HMAC_SHA256, &held)))
}

fn load_or_create_key(tx: &Tx<'_>, name: &str, fresh: &[u8; 32]) -> Result<hmac::Key, Error> {
    if let Some(held) = find_key(tx, name)? {
        return Ok(held);
    }
    tx.execute(
        "INSERT INTO secrets (name, value) VALUES (?1, ?2)",
        params![name, fresh],
    )?;
    Ok(hmac::Key::new(hmac::HMAC_SHA256, fresh))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_follows_finds_the_keys_of_the_owner_and_makes_none() {
        let data = tempfile::tempdir().unwrap();
        let control = ControlDatabase::open(data.path()).unwrap();
        let missing = InstallationSecrets::find(&control).await.unwrap();
        assert!(missing.is_none());
        let random = Random::system();
        let made = InstallationSecrets::load(&control, &random).await.unwrap();
        let again = InstallationSecrets::load(&control, &random).await.unwrap();
        let found = InstallationSecrets::find(&control).await.unwrap().unwrap();
        let signed =
            |secrets: &InstallationSecrets| hmac::sign(&secrets.unlock, b"x").as_ref().to_vec();
        assert_eq!(signed(&made), signed(&found));
        assert_eq!(signed(&made), signed(&again));
        assert_ne!(signed(&made), hmac::sign(&made.holders, b"x").as_ref());
    }
}
