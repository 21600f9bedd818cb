//! nginx, if it is installed: the same pages as files, from its cache of open files, without a log.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::server::{Bench, Running, free_address, on_path};

/// Starts nginx on the pages in a directory; `None` if it is not installed.
pub(crate) fn start(
    bench: &Bench,
    program: Option<PathBuf>,
    pages: &Path,
) -> anyhow::Result<Option<Running>> {
    let Some(program) = program.or_else(|| on_path("nginx")) else {
        return Ok(None);
    };
    let address = free_address()?;
    let home = bench.directory("nginx");
    std::fs::create_dir(&home)?;
    let settings = home.join("nginx.conf");
    std::fs::write(&settings, conf(address, &home, pages))?;
    let mut command = Command::new(program);
    // Workers survive nginx, unless they are killed with it.
    command.process_group(0);
    command.arg("-p").arg(&home).arg("-c").arg(&settings);
    Running::start_at(command, address).map(Some)
}

fn conf(address: SocketAddr, home: &Path, pages: &Path) -> String {
    let (home, pages) = (home.display(), pages.display());
    // The workers must read files of nginx's user, so they keep that user.
    let user = if rustix::process::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    format!(
        "daemon off; {user} worker_processes auto; pid {home}/pid; error_log stderr crit;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000000; default_type text/html;
  open_file_cache max=1000; open_file_cache_valid 1h;
  client_body_temp_path {home}/body; proxy_temp_path {home}/proxy; fastcgi_temp_path {home}/fastcgi;
  uwsgi_temp_path {home}/uwsgi; scgi_temp_path {home}/scgi;
  server {{ listen {address}; root {pages}; }}
}}
"
    )
}
