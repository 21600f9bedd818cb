//! Pages: published, rendered, stored and served; and the landing page, where anybody publishes one.

#![forbid(unsafe_code)]

pub mod deployments;
pub mod landing;

use svc_platform::{
    access, activity, config, content, control, edge, http, infra, projects, telemetry, workspaces,
};
