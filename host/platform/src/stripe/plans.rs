//! Calls of the provider about the plans of workspaces, and about cancellations.

use http::StatusCode;
use serde_json::Value;

use super::{StripeClient, StripeError, WORKSPACE_METADATA};

/// Hosted checkout of a plan to create.
#[derive(Clone, Copy, Debug)]
pub struct NewPlanCheckout<'a> {
    /// Identifier of the workspace.
    pub workspace: &'a str,
    /// The provider's id of the plan's price.
    pub price: &'a str,
    /// The provider's id of the paying customer, if it is known.
    pub customer: Option<&'a str>,
    /// URL that the user comes back to, paid or not.
    pub return_url: &'a str,
}

impl StripeClient {
    /// Creates a hosted checkout of a plan; returns its URL.
    ///
    /// # Errors
    /// [`StripeError`].
    pub async fn create_plan_checkout(
        &self,
        new: NewPlanCheckout<'_>,
        key: &str,
    ) -> Result<String, StripeError> {
        let metadata = format!("metadata[{WORKSPACE_METADATA}]");
        // The resulting subscription carries our metadata, too.
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

    /// Opens the provider's customer portal; returns its URL.
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

    /// Tells the provider to end a subscription at the end of the paid period. A subscription that the provider does not know has
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
            Err(StripeError::Refused(refusal)) if refusal.code == MISSING_OBJECT_CODE => Ok(()),
            done => done.map(|_| ()),
        }
    }

    /// Closes a hosted checkout, so that it can no longer be paid. A complete or expired checkout stays as it is.
    ///
    /// # Errors
    /// [`StripeError`].
    pub async fn expire_checkout(&self, checkout: &str, key: &str) -> Result<(), StripeError> {
        let path = format!("/v1/checkout/sessions/{}/expire", path_segment(checkout)?);
        match self.post(&path, &[], key).await {
            Err(StripeError::Refused(refusal))
                if refusal.code == MISSING_OBJECT_CODE
                    || refusal.status == StatusCode::BAD_REQUEST =>
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

/// The provider's error code for an unknown object.
const MISSING_OBJECT_CODE: &str = "resource_missing";

/// Checks that a provider's id can be a path segment.
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
