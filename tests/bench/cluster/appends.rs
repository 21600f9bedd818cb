//! Appends: what a node has sent to the ledger, and the bare client that sends the same bytes again and does nothing else.

use std::time::{Duration, Instant};

use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

/// Commits that are read at the most.
const COMMITS: i64 = 1_000;
/// Bytes of a commit's row beside its body and the name of its database: seven columns, the header, and its pointer in the page.
const ROW_BYTES: i64 = 77;

const APPEND: &str = "SELECT svc.append($1::uuid, 1, $2, $3, $4, $5, $6, $7, $8)";

/// Appends of a node, each with the bodies of its commits.
pub(super) struct Appends {
    bodies: Vec<Vec<Vec<u8>>>,
    /// Average bytes of a commit's row, without the index.
    pub(super) row_bytes: f64,
}

/// Result of sending appends again.
pub(super) struct Replay {
    /// Commits a second.
    pub(super) rate: f64,
    /// Microseconds of each append.
    pub(super) latencies: Vec<f64>,
}

/// Returns the number of the last commit of a database.
pub(super) async fn last_commit(client: &Client, database: &str) -> anyhow::Result<i64> {
    let sql = "SELECT greatest((SELECT max(commit) FROM svc.commits WHERE db = $1), (SELECT max(commit) FROM svc.bases WHERE db = $1))";
    Ok(client.query_one(sql, &[&database]).await?.try_get(0)?)
}

impl Appends {
    /// Reads the commits of a database after another one, as far as no base has made them needless.
    pub(super) async fn read(client: &Client, database: &str, after: i64) -> anyhow::Result<Self> {
        // The rows of one append are of one transaction.
        let sql = "SELECT xmin::text, body, (octet_length(body) + pg_column_size(db))::bigint FROM svc.commits
            WHERE db = $1 AND commit > $2 ORDER BY commit LIMIT $3";
        let rows = client.query(sql, &[&database, &after, &COMMITS]).await?;
        let mut bodies: Vec<Vec<Vec<u8>>> = Vec::new();
        let (mut last, mut bytes) = (String::new(), 0);
        for row in &rows {
            let transaction: String = row.try_get(0)?;
            let body: Vec<u8> = row.try_get(1)?;
            bytes += row.try_get::<_, i64>(2)? + ROW_BYTES;
            match bodies.last_mut() {
                Some(append) if transaction == last => append.push(body),
                _ => bodies.push(vec![body]),
            }
            last = transaction;
        }
        Ok(Self {
            bodies,
            row_bytes: bytes as f64 / rows.len() as f64,
        })
    }

    /// Number of appends.
    pub(super) fn len(&self) -> usize {
        self.bodies.len()
    }

    /// Appends the bodies in turn, for `time`, one append after the other: as a run of its own, to a database of its own.
    pub(super) async fn replay(&self, client: &Client, time: Duration) -> anyhow::Result<Replay> {
        let names = "SELECT gen_random_uuid()::text, gen_random_uuid()::text";
        let row = client.query_one(names, &[]).await?;
        let (run, database): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let join = "SELECT svc.add_run($1::text::uuid, 1, 'bare', 60000, '', '', '', 0)";
        client.query(join, &[&run]).await?;
        let base = "INSERT INTO svc.bases (db, commit, state, object, bytes, at) VALUES ($1, 0, 0, '', 0, 0)";
        client.execute(base, &[&database]).await?;
        let replay = self.send(client, &run, &database, time).await?;
        let leave = "SELECT svc.bury($1::text::uuid, 1, $1::text::uuid, NULL)";
        client.query(leave, &[&run]).await?;
        for table in ["commits", "bases"] {
            let delete = format!("DELETE FROM svc.{table} WHERE db = $1");
            client.execute(delete.as_str(), &[&database]).await?;
        }
        Ok(replay)
    }

    async fn send(
        &self,
        client: &Client,
        run: &str,
        database: &str,
        time: Duration,
    ) -> anyhow::Result<Replay> {
        let (mut last, mut latencies) = (0, Vec::new());
        let begun = Instant::now();
        for append in self.bodies.iter().cycle() {
            let sent = Instant::now();
            if sent - begun >= time {
                break;
            }
            let first = last + 1;
            last += i64::try_from(append.len())?;
            // The state after a commit is called by its number.
            let numbers: Vec<i64> = (first..=last).collect();
            let befores: Vec<i64> = (first - 1..last).collect();
            let (databases, ats) = (vec![database; append.len()], vec![0_i64; append.len()]);
            let noted: Vec<&[u8]> = vec![&[]; append.len()];
            let parameters: [(&(dyn ToSql + Sync), Type); 8] = [
                (&run, Type::TEXT),
                (&databases, Type::TEXT_ARRAY),
                (&numbers, Type::INT8_ARRAY),
                (&ats, Type::INT8_ARRAY),
                (&befores, Type::INT8_ARRAY),
                (&numbers, Type::INT8_ARRAY),
                (append, Type::BYTEA_ARRAY),
                (&noted, Type::BYTEA_ARRAY),
            ];
            client.query_typed(APPEND, &parameters).await?;
            latencies.push(sent.elapsed().as_secs_f64() * 1e6);
        }
        Ok(Replay {
            rate: last as f64 / begun.elapsed().as_secs_f64(),
            latencies,
        })
    }
}
