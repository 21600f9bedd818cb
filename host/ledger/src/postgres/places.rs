//! Places of databases, and what is in the bucket of them.

use svc_base::clock::Timestamp;
use svc_base::positions::{Checksum, CommitPosition};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::connect::Parameter;
use super::{PostgresLedger, column, database as database_of, number, only, run as run_of};
use crate::types::{
    Base, BeatCount, ClaimOutcome, DatabaseName, KeptBases, LedgerError, Place, RunId,
};

impl PostgresLedger {
    pub(super) async fn claim_place(
        &self,
        run: RunId,
        database: DatabaseName,
    ) -> Result<ClaimOutcome, LedgerError> {
        let name = database.to_string();
        let statement = "SELECT db, run, epoch FROM svc.claim($1, $2, $3)";
        let rows = self.call(statement, run, &[(&name, Type::TEXT)]).await?;
        let place = place(only(&rows)?)?;
        Ok(if place.run == run {
            ClaimOutcome::Claimed(place)
        } else {
            ClaimOutcome::Held(place)
        })
    }

    pub(super) async fn release_place(&self, place: Place) -> Result<(), LedgerError> {
        let name = place.database.to_string();
        let epoch = place.epoch.0.cast_signed();
        let statement = "SELECT svc.release($1, $2, $3, $4)";
        self.call(
            statement,
            place.run,
            &[(&name, Type::TEXT), (&epoch, Type::INT8)],
        )
        .await?;
        Ok(())
    }

    pub(super) async fn all_places(&self) -> Result<Vec<Place>, LedgerError> {
        let statement = "SELECT db, run, epoch FROM svc.places";
        let rows = self.reads.read(statement, &[]).await?;
        let mut places: Vec<_> = rows.iter().map(place).collect::<Result<_, _>>()?;
        places.sort_by_key(|place| place.database);
        Ok(places)
    }

    pub(super) async fn bases_of(
        &self,
        reader: Option<RunId>,
        database: DatabaseName,
    ) -> Result<Vec<Base>, LedgerError> {
        let name = database.to_string();
        let statement = "SELECT db, commit, state, object, bytes, at FROM svc.bases_of($1, $2, $3)";
        let rows = self.look(statement, reader, &[(&name, Type::TEXT)]).await?;
        rows.iter().map(base).collect()
    }

    pub(super) async fn name_base(&self, run: RunId, base: &Base) -> Result<(), LedgerError> {
        let name = base.database.to_string();
        let position = base.position.0.cast_signed();
        let state = base.state.0.cast_signed();
        let bytes = base.bytes.cast_signed();
        let statement = "SELECT svc.add_base($1, $2, $3, $4, $5, $6, $7, $8)";
        self.call(
            statement,
            run,
            &[
                (&name, Type::TEXT),
                (&position, Type::INT8),
                (&state, Type::INT8),
                (&base.object, Type::TEXT),
                (&bytes, Type::INT8),
                (&base.at.0, Type::INT8),
            ],
        )
        .await?;
        Ok(())
    }

    pub(super) async fn trim_commits(
        &self,
        run: RunId,
        database: DatabaseName,
        kept: KeptBases,
    ) -> Result<u64, LedgerError> {
        let (name, kept) = (database.to_string(), i64::from(kept.count()));
        let statement = "SELECT svc.trim($1, $2, $3, $4)";
        let parameters: [Parameter<'_>; 2] = [(&name, Type::TEXT), (&kept, Type::INT8)];
        let rows = self.call(statement, run, &parameters).await?;
        number(only(&rows)?, 0)
    }

    pub(super) async fn forget_database(
        &self,
        run: RunId,
        database: DatabaseName,
    ) -> Result<(), LedgerError> {
        let name = database.to_string();
        let statement = "SELECT svc.forget($1, $2, $3)";
        self.call(statement, run, &[(&name, Type::TEXT)]).await?;
        Ok(())
    }
}

fn place(row: &Row) -> Result<Place, LedgerError> {
    Ok(Place {
        database: database_of(row, 0)?,
        run: run_of(row, 1)?,
        epoch: BeatCount(number(row, 2)?),
    })
}

fn base(row: &Row) -> Result<Base, LedgerError> {
    Ok(Base {
        database: database_of(row, 0)?,
        position: CommitPosition(number(row, 1)?),
        state: Checksum(number(row, 2)?),
        object: column(row, 3)?,
        bytes: number(row, 4)?,
        at: Timestamp(column(row, 5)?),
    })
}
