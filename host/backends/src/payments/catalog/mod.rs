//! The catalog of a project: its products and prices. It is stored here and needs no payment provider.

mod store;

use self::store::NewPriceIds;
use super::Payments;
use super::model::{NewPrice, PaymentError, Price};
use crate::control;
use crate::control::audit::AuditAction;
use crate::control::kept_answers::AnswerRecorder;
use crate::deployments::serving::pages::ServedPage;
use crate::projects;
use crate::workspaces::credential;
use svc_base::ids::{ProjectId, uuid_v7};
use svc_base::names::is_price_id;

impl Payments {
    /// Lists the prices of a project, by product.
    pub async fn catalog(&self, project: ProjectId) -> Result<Vec<Price>, PaymentError> {
        let read = self
            .infra
            .control
            .read(move |c| store::catalog(c, &project));
        Ok(read.await?)
    }

    /// Lists what a page's project sells: its active prices, by product.
    ///
    /// # Errors
    /// `NoProject` for a quick share, or if the project has just ended.
    pub(super) async fn active_prices(
        &self,
        page: &ServedPage,
    ) -> Result<Vec<Price>, PaymentError> {
        let project = self.project_of(page).await?;
        let read = self
            .infra
            .control
            .read(move |c| store::active_prices(c, &project));
        Ok(read.await?)
    }

    /// Adds a price to a project's catalog, in the place of another if it names one; durable when it returns.
    ///
    /// # Errors
    /// [`PaymentError`].
    pub async fn add_price(
        &self,
        project: ProjectId,
        new: NewPrice,
        keep: AnswerRecorder<Price>,
    ) -> Result<Price, PaymentError> {
        let ids = NewPriceIds {
            price: format!("price_{}", credential::random_secret(&self.infra.random)?),
            product: uuid_v7(&self.infra.clock, &self.infra.random)?.to_string(),
        };
        let now = self.infra.clock.now();
        self.infra
            .control
            .write(move |tx| {
                if !projects::is_live(tx, &project, now)? {
                    return Err(PaymentError::NoProject);
                }
                if let Some(replaced) = &new.replaces {
                    store::take_off(tx, &project, replaced)?;
                    let act = AuditAction::PriceDeactivate;
                    projects::record_audit(tx, &project, act, replaced, now)?;
                }
                let made = store::insert_price(tx, &project, &new, &ids, now)?;
                projects::record_audit(tx, &project, AuditAction::PriceCreate, &ids.price, now)?;
                keep.store(tx, &made)?;
                Ok(made)
            })
            .await
    }

    /// Deactivates a price: it cannot be bought from now on. Purchases stay.
    ///
    /// # Errors
    /// `NoPrice` if the project has no such price.
    pub async fn deactivate(&self, project: ProjectId, id: String) -> Result<Price, PaymentError> {
        let now = self.infra.clock.now();
        let write = self.infra.control.write(move |tx| {
            if store::deactivate(tx, &project, &id)? {
                projects::record_audit(tx, &project, AuditAction::PriceDeactivate, &id, now)?;
            }
            store::find_price(tx, &project, &id).map_err(control::Error::from)
        });
        write.await?.ok_or(PaymentError::NoPrice)
    }

    /// Finds a price of a project by its id or its key, active or not. An active price goes before those that had its key earlier.
    ///
    /// # Errors
    /// `NoPrice` if the project has no such price.
    pub(super) async fn price(
        &self,
        project: ProjectId,
        named: String,
    ) -> Result<Price, PaymentError> {
        let read = self.infra.control.read(move |c| match is_price_id(&named) {
            true => store::find_price(c, &project, &named),
            false => store::find_by_key(c, &project, &named),
        });
        read.await?.ok_or(PaymentError::NoPrice)
    }
}
