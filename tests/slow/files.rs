//! Files of sites against a model, for long.

use svc_tests::run_file_model;

/// Number of random steps.
const STEPS: usize = 10_000;

#[tokio::test]
async fn ten_thousand_steps_lose_no_file_and_leave_none_over() {
    run_file_model(34, STEPS).await;
}
