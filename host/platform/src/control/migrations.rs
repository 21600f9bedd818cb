//! The schema of the control database, as numbered scripts that each run once.

use rusqlite::Connection;

use super::Error;
use super::counters::InstallationCounters;
use svc_base::fault;
use svc_base::ids::DeploymentId;

/// Migrations in order, numbered from 1. A released script never changes.
const MIGRATION_SCRIPTS: &[&str] = &[
    include_str!("../../../migrations/0001_house.sql"),
    include_str!("../../../migrations/0002_projects.sql"),
    include_str!("../../../migrations/0003_backends.sql"),
    include_str!("../../../migrations/0004_guests.sql"),
    include_str!("../../../migrations/0005_operators.sql"),
    include_str!("../../../migrations/0006_draft_bases.sql"),
    include_str!("../../../migrations/0007_sharing.sql"),
    include_str!("../../../migrations/0008_visitors.sql"),
    include_str!("../../../migrations/0009_payments.sql"),
    include_str!("../../../migrations/0010_members.sql"),
    include_str!("../../../migrations/0011_agents.sql"),
    include_str!("../../../migrations/0012_counters.sql"),
    include_str!("../../../migrations/0013_homes.sql"),
    include_str!("../../../migrations/0014_payment_endings.sql"),
    include_str!("../../../migrations/0015_shares_of_caps.sql"),
    include_str!("../../../migrations/0016_checkout_cookies.sql"),
    include_str!("../../../migrations/0017_checkout_cookie_links.sql"),
    include_str!("../../../migrations/0018_installed_guests.sql"),
    include_str!("../../../migrations/0019_price_keys.sql"),
    include_str!("../../../migrations/0020_action_ends.sql"),
    include_str!("../../../migrations/0021_key_roles.sql"),
    include_str!("../../../migrations/0022_price_intervals.sql"),
    include_str!("../../../migrations/0023_files.sql"),
    include_str!("../../../migrations/0024_sites.sql"),
    include_str!("../../../migrations/0025_domains.sql"),
    include_str!("../../../migrations/0026_passkeys.sql"),
    include_str!("../../../migrations/0027_visitors_files.sql"),
    include_str!("../../../migrations/0028_shared_hours.sql"),
    include_str!("../../../migrations/0029_console_links.sql"),
];
/// First schema with `secure_delete`: earlier ones may have deleted rows in free space.
const FIRST_SECURE_DELETE: u32 = 5;
/// First schema whose views are counted in the file of counters.
const FIRST_WITH_COUNTERS: u32 = 12;

/// The number of the newest schema.
#[allow(clippy::cast_possible_truncation, reason = "there are a few")]
pub const SCHEMA_VERSION: u32 = MIGRATION_SCRIPTS.len() as u32;

/// Brings a database to the newest schema; data that has moved to another file is copied there first. Several processes may call it
/// at once. A new database is made in one commit. Of an older one each script is a commit of its own, and `committed` is called before
/// the next, so that no more than one waits for being sent elsewhere.
///
/// # Errors
/// [`Error::Newer`] for a database of a newer program.
pub(super) fn migrate(
    connection: &mut Connection,
    counters: &InstallationCounters,
    committed: impl Fn(),
) -> Result<(), Error> {
    let held: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if (1..FIRST_SECURE_DELETE).contains(&held) {
        connection.execute_batch("VACUUM")?;
        committed();
    }
    let mut last = migrate_once(connection, counters)?;
    while last < SCHEMA_VERSION {
        committed();
        last = migrate_once(connection, counters)?;
    }
    Ok(())
}

/// Runs the next script, or all of them for a new database. Returns the number of the last.
fn migrate_once(
    connection: &mut Connection,
    counters: &InstallationCounters,
) -> Result<u32, Error> {
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let done: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    // A newer schema is unknown here, and rows written without that knowledge could break it.
    if done > SCHEMA_VERSION {
        return Err(Error::Newer(done));
    }
    let last = match done {
        0 => SCHEMA_VERSION,
        _ => SCHEMA_VERSION.min(done + 1),
    };
    if (1..FIRST_WITH_COUNTERS).contains(&done) && last == FIRST_WITH_COUNTERS {
        // A crash between the two repeats this: nothing is counted before both are done.
        counters.import_visits(read_old_visits(&transaction)?)?;
        fault::point("takeover.counted");
    }
    for (number, script) in (1_u32..)
        .zip(MIGRATION_SCRIPTS)
        .filter(|(number, _)| (done + 1..=last).contains(number))
    {
        transaction.execute_batch(script)?;
        transaction.pragma_update(None, "user_version", number)?;
    }
    fault::point("takeover.prepared");
    transaction.commit()?;
    fault::point("takeover.done");
    Ok(last)
}

/// Reads the views that earlier schemas counted here.
fn read_old_visits(c: &Connection) -> rusqlite::Result<Vec<(DeploymentId, u64)>> {
    c.prepare("SELECT id, visits FROM deployments WHERE visits > 0")?
        .query_map([], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
        })?
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_in_ascii_after_an_upgrade() {
        let c = Connection::open_in_memory().unwrap();
        let number = MIGRATION_SCRIPTS
            .iter()
            .position(|script| script.contains("ADD COLUMN host_cookie"));
        let number = number.unwrap();
        for script in &MIGRATION_SCRIPTS[..number] {
            c.execute_batch(script).unwrap();
        }
        let emails = [
            "\u{212a}ate@example.com",
            " Kate@Example.com\n",
            "ÄRA@x.example",
        ];
        for (id, email) in emails.iter().enumerate() {
            c.execute(
                "INSERT INTO payment_sessions (id, project_id, deployment_id, price_id, price_label, amount, currency, recurring,
                    return_to, cookie_sha256, status, email, email_key, created_at, updated_at, change)
                 VALUES (?1, 'p', 'd', 'r', 'l', 1, 'eur', 0, '/', x'00', 'paid', ?2, ?3, 0, 0, 1)",
                rusqlite::params![id.to_string(), email, email.trim().to_lowercase()],
            )
            .unwrap();
        }
        c.execute_batch(MIGRATION_SCRIPTS[number]).unwrap();
        let mut rows = c
            .prepare("SELECT email_key, host_cookie FROM payment_sessions ORDER BY id")
            .unwrap();
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        let rows: Vec<(String, bool)> = rows.unwrap().map(Result::unwrap).collect();
        let keys = [
            "\u{212a}ate@example.com",
            "kate@example.com",
            "Ära@x.example",
        ];
        assert_eq!(rows, keys.map(|key| (key.to_owned(), false)));
    }

    #[test]
    fn of_the_active_prices_of_a_project_one_has_a_key() {
        let c = Connection::open_in_memory().unwrap();
        let number = MIGRATION_SCRIPTS
            .iter()
            .position(|script| script.contains("payment_prices ADD COLUMN key"));
        let number = number.unwrap();
        for script in &MIGRATION_SCRIPTS[..number] {
            c.execute_batch(script).unwrap();
        }
        c.execute(
            "INSERT INTO payment_prices (id, project_id, product_id, label, amount, currency, recurring, created_at)
             VALUES ('old', 'p', 'q', 'l', 1, 'eur', 0, 0), ('older', 'p', 'q', 'l', 1, 'eur', 0, 0)",
            [],
        )
        .unwrap();
        c.execute_batch(MIGRATION_SCRIPTS[number]).unwrap();
        let counted = "SELECT count(*) FROM payment_prices WHERE key IS NULL AND active";
        let old: u32 = c.query_row(counted, [], |row| row.get(0)).unwrap();
        assert_eq!(old, 2);
        let add = |id: &str, project: &str| {
            c.execute(
                "INSERT INTO payment_prices (id, project_id, product_id, key, label, amount, currency, recurring, created_at)
                 VALUES (?1, ?2, 'q', 'pro', 'l', 1, 'eur', 0, 0)",
                [id, project],
            )
        };
        add("first", "p").unwrap();
        assert!(add("second", "p").is_err());
        add("foreign", "other").unwrap();
        let withdraw = "UPDATE payment_prices SET active = 0 WHERE id = 'first'";
        c.execute(withdraw, []).unwrap();
        add("second", "p").unwrap();
        assert!(add("third", "p").is_err());
    }

    #[test]
    fn keys_stay_as_they_are_when_they_may_have_every_role() {
        let c = Connection::open_in_memory().unwrap();
        let number = MIGRATION_SCRIPTS
            .iter()
            .position(|script| script.contains("keys_before"));
        let number = number.unwrap();
        for script in &MIGRATION_SCRIPTS[..number] {
            c.execute_batch(script).unwrap();
        }
        c.execute_batch(
            "INSERT INTO workspaces (id, slug, display_name, plan, created_at) VALUES ('w', 'w', 'w', 'free', 0);
             INSERT INTO keys (key_id, workspace_id, secret_sha256, created_at, last_used_at, revoked_at, role, note, expires_at)
                 VALUES ('a', 'w', x'01', 1, 2, 3, 'viewer', 'n', 4), ('b', 'w', x'02', 1, NULL, NULL, 'editor', NULL, NULL);",
        )
        .unwrap();
        let keys = || -> Vec<String> {
            let sql = "SELECT json_array(key_id, workspace_id, hex(secret_sha256), created_at, last_used_at, revoked_at, role,
                    note, expires_at) FROM keys ORDER BY key_id";
            let mut rows = c.prepare(sql).unwrap();
            let rows = rows.query_map([], |row| row.get(0)).unwrap();
            rows.map(Result::unwrap).collect()
        };
        let before = keys();
        c.execute_batch(MIGRATION_SCRIPTS[number]).unwrap();
        assert_eq!(keys(), before);
        assert_eq!(before.len(), 2);
        let set = |role: &str| c.execute("UPDATE keys SET role = ?1 WHERE key_id = 'a'", [role]);
        set("owner").unwrap();
        assert!(set("machine").is_err());
        c.execute("DELETE FROM workspaces", []).unwrap();
        assert!(keys().is_empty(), "they end with their workspace");
    }

    #[test]
    fn each_script_of_an_upgrade_is_a_commit_of_its_own() {
        let directory = tempfile::TempDir::new().unwrap();
        let counters = InstallationCounters::open(directory.path()).unwrap();
        // The last one is sent by who goes on with the database.
        for (held, calls) in [(0, 0), (SCHEMA_VERSION - 3, 2), (SCHEMA_VERSION, 0)] {
            let mut connection = Connection::open_in_memory().unwrap();
            for (number, script) in (1..=held).zip(MIGRATION_SCRIPTS) {
                connection.execute_batch(script).unwrap();
                connection
                    .pragma_update(None, "user_version", number)
                    .unwrap();
            }
            let counted = std::cell::Cell::new(0);
            migrate(&mut connection, &counters, || {
                counted.set(counted.get() + 1);
            })
            .unwrap();
            assert_eq!(counted.get(), calls, "{held}");
            let version = |row: &rusqlite::Row<'_>| row.get::<_, u32>(0);
            let version = connection.pragma_query_value(None, "user_version", version);
            assert_eq!(version.unwrap(), SCHEMA_VERSION);
        }
    }

    #[test]
    fn a_database_of_a_newer_program_is_left_alone() {
        let directory = tempfile::TempDir::new().unwrap();
        let counters = InstallationCounters::open(directory.path()).unwrap();
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &counters, || ()).unwrap();
        migrate(&mut connection, &counters, || ()).unwrap();
        let newer = SCHEMA_VERSION + 1;
        let set = connection.pragma_update(None, "user_version", newer);
        set.unwrap();
        let refused = migrate(&mut connection, &counters, || ()).unwrap_err();
        assert!(matches!(refused, Error::Newer(found) if found == newer));
        assert!(refused.to_string().contains("use a newer one"), "{refused}");
    }
}
