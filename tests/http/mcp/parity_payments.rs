//! More steps of the parity test: what a project sells.

use http::Method;
use serde_json::{Value, json};

use super::parity_twins::{PROJECTS, Steps};

impl Steps {
    /// The catalog of a project, and its sessions.
    pub(super) fn payments(&mut self) {
        let price = |change: Value| {
            let mut body =
                json!({ "product_name": "Tea", "label": "Pot", "amount": 300, "currency": "EUR" });
            for (name, value) in change.as_object().unwrap() {
                body[name] = value.clone();
            }
            body
        };
        for (body, status) in [
            (
                price(json!({ "recurring": true, "description": "Leaves" })),
                201,
            ),
            (price(json!({})), 201),
            (price(json!({ "amount": 0 })), 400),
            (price(json!({ "currency": "xxx" })), 400),
            (price(json!({ "label": "" })), 400),
            (price(json!({ "colour": "red" })), 400),
        ] {
            self.sell("add_price", Method::POST, "catalog", body, status);
            if status == 201 {
                self.keep("price", "/id");
            }
        }
        for (rest, status) in [
            ("catalog/$price", 200),
            ("catalog/$price", 200),
            ("catalog/price_none", 404),
        ] {
            let id = rest.split('/').nth(1).unwrap();
            let arguments = json!({ "price_id": id });
            self.step(
                "deactivate_price",
                Method::DELETE,
                rest,
                arguments,
                Value::Null,
                status,
            );
        }
        self.sell("catalog", Method::GET, "catalog", json!({}), 200);
        for (limit, status) in [(1, 200), (0, 400), (1_001, 400)] {
            let rest = format!("sessions?limit={limit}");
            let arguments = json!({ "limit": limit });
            self.step(
                "sessions",
                Method::GET,
                &rest,
                arguments,
                Value::Null,
                status,
            );
        }
        let none = json!({ "action": "catalog", "project_id": "none" });
        let path = format!("{PROJECTS}/none/payments/catalog");
        self.add("manage_payments", none, Method::GET, path, Value::Null, 404);
    }

    /// A step whose arguments are what REST has in the body.
    fn sell(&mut self, action: &str, method: Method, rest: &str, body: Value, status: u16) {
        self.step(action, method, rest, body.clone(), body, status);
    }

    fn step(
        &mut self,
        action: &str,
        method: Method,
        rest: &str,
        mut arguments: Value,
        body: Value,
        status: u16,
    ) {
        arguments["action"] = action.into();
        arguments["project_id"] = "$project".into();
        let path = format!("{PROJECTS}/$project/payments/{rest}");
        self.add("manage_payments", arguments, method, path, body, status);
    }
}
