//! Files of visitors against a model, for long.

use svc_tests::run_upload_model;

/// Number of random steps.
const STEPS: usize = 10_000;

#[tokio::test]
async fn ten_thousand_steps_with_restores_lose_no_file_and_leave_none_over() {
    run_upload_model(38, STEPS).await;
}
