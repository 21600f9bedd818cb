//! Calls of the provider about the plans of workspaces, and about what is to end.

use http::StatusCode;
use serde_json::Value;

use super::{Stripe, StripeError, WORKSPACE_METADATA};

/// A hosted checkout of a plan to make.
#[derive(Clone, Copy, Debug)]
pub struct PlanCheckout<'a> {
    /// The workspace, by its id.
    pub workspace: &'a str,
    /// The provider's price of the plan.
    pub price: &'a str,
    /// Customer who pays, if the provider knows them already.
    pub customer: Option<&'a str>,
    /// Where the user goes who has paid, or has not.
    pub return_url: &'a str,
}

impl Stripe {
    /// Makes a hosted checkout of a plan; returns its address.
    ///
    /// # Errors
    /// [`StripeError`].
    pub async fn create_plan_checkout(
        &self,
        new: PlanCheckout<'_>,
        key: &str,
    ) -> Result<String, StripeError> {
        let metadata = format!("metadata[{WORKSPACE_METADATA}]");
        // What comes of the checkout says whose it is, too.
        let made = format!("subscription_data[metadata][{WORKSPACE_METADATA}]");
        let mut form = vec![
            ("mode", "subscription"),
            ("success_url", new.return_url),
            ("cancel_url", new.return_url),
            ("client_reference_id", new.workspace),
            (&metadata, new.workspace),
            (&made, new.workspace),
            ("line_items[0][price]", new.price),
            ("line_items[0][quantity]", "1"),
        ];
        form.extend(new.customer.map(|customer| ("customer", customer)));
        let form = owned_pairs(&form);
        let made = self.post("/v1/checkout/sessions", &form, key).await?;
        self.page_url(&made)
    }

    /// Opens the provider's own pages about what a customer pays for; returns their address.
    ///
    /// # Errors
    /// [`StripeError`].
    pub async fn portal(
        &self,
        customer: &str,
        return_url: &str,
        key: &str,
    ) -> Result<String, StripeError> {
        let form = owned_pairs(&[("customer", customer), ("return_url", return_url)]);
        let made = self.post("/v1/billing_portal/sessions", &form, key).await?;
        self.page_url(&made)
    }

    /// Has a subscription end at the close of the period that is paid for. One that the provider does not have any more has
    /// ended.
    ///
    /// # Errors
    /// [`StripeError`].
    pub async fn cancel_at_period_end(
        &self,
        subscription: &str,
        key: &str,
    ) -> Result<(), StripeError> {
        let path = format!("/v1/subscriptions/{}", path_segment(subscription)?);
        let form = owned_pairs(&[("cancel_at_period_end", "true")]);
        match self.post(&path, &form, key).await {
            Err(StripeError::Refused(refusal)) if refusal.code == MISSING_OBJECT => Ok(()),
            done => done.map(|_| ()),
        }
    }

    /// Closes a hosted checkout, so that nobody can pay it any more. One that is complete, or has expired, is left alone.
    ///
    /// # Errors
    /// [`StripeError`].
    pub async fn expire_checkout(&self, checkout: &str, key: &str) -> Result<(), StripeError> {
        let path = format!("/v1/checkout/sessions/{}/expire", path_segment(checkout)?);
        match self.post(&path, &[], key).await {
            Err(StripeError::Refused(refusal))
                if refusal.code == MISSING_OBJECT || refusal.status == StatusCode::BAD_REQUEST =>
            {
                Ok(())
            }
            done => done.map(|_| ()),
        }
    }

    fn page_url(&self, made: &Value) -> Result<String, StripeError> {
        let url = made["url"].as_str().filter(|url| self.is_web_url(url));
        let none = || StripeError::Failed("its answer has no address to go to".to_owned());
        url.map(str::to_owned).ok_or_else(none)
    }
}

/// The provider's code of what it does not have.
const MISSING_OBJECT: &str = "resource_missing";

/// An id of the provider's as a segment of a path.
fn path_segment(id: &str) -> Result<&str, StripeError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if id.is_empty() || !id.bytes().all(plain) {
        return Err(StripeError::Failed(
            "an id that it has given is none that can be asked for".to_owned(),
        ));
    }
    Ok(id)
}

fn owned_pairs(form: &[(&str, &str)]) -> Vec<(String, String)> {
    let fields = form.iter();
    fields
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}
