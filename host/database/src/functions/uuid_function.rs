//! `uuid()`: a version 7 by the server's clock and its randomness, for keys that sort by time.

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, Result};

use super::sqlite_error;
use svc_base::clock::Clock;
use svc_base::ids;
use svc_base::random::Random;

/// Registers it.
pub(super) fn register(connection: &Connection, clock: &Clock) -> Result<()> {
    let (clock, random) = (clock.clone(), Random::system());
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("uuid", 0, flags, move |_| {
        let uuid =
            ids::uuid_v7(&clock, &random).map_err(|error| sqlite_error(&error.to_string()))?;
        Ok(uuid.hyphenated().to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::answer;

    #[test]
    fn each_is_new_and_carries_the_time() {
        let [one, other] = [(); 2].map(|()| answer("uuid()"));
        assert_ne!(one, other);
        let id: uuid::Uuid = one.trim_matches('\'').parse().unwrap();
        assert_eq!(id.get_version_num(), 7);
        assert_eq!(id.get_timestamp().unwrap().to_unix().0, 0);
    }
}
