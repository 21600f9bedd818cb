//! Caddy and nginx: the files of `docs/` as each program is started with them.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{HOST, SITES};

/// A proxy: its program, its file, and how both come to run on ports of ours.
pub(super) struct ProxyProgram {
    pub(super) program: &'static str,
    configure: fn(&ProxyFolder) -> String,
    arguments: fn(&Path) -> Vec<String>,
}

pub(super) const CADDY: ProxyProgram = ProxyProgram {
    program: "caddy",
    configure: caddyfile,
    arguments: |file| {
        let file = file.to_str().unwrap().to_owned();
        ["run", "--adapter", "caddyfile", "--config"]
            .map(str::to_owned)
            .into_iter()
            .chain([file])
            .collect()
    },
};

pub(super) const NGINX: ProxyProgram = ProxyProgram {
    program: "nginx",
    configure: nginx_conf,
    arguments: |file| {
        let home = file.parent().unwrap().to_str().unwrap().to_owned();
        vec![
            "-p".to_owned(),
            home,
            "-c".to_owned(),
            file.display().to_string(),
        ]
    },
};

/// Where a proxy runs.
pub(super) struct ProxyFolder {
    home: TempDir,
    server: SocketAddr,
    pub(super) http: u16,
    pub(super) https: u16,
}

impl ProxyFolder {
    /// A place in front of a server, with a certificate for its names.
    pub(super) fn new(server: SocketAddr, http: u16, https: u16) -> Self {
        let folder = Self {
            home: TempDir::new().unwrap(),
            server,
            http,
            https,
        };
        write_certificate(&folder);
        folder
    }

    /// A path in its folder.
    fn path_of(&self, name: &str) -> String {
        self.home.path().join(name).display().to_string()
    }

    /// A file of ours, which speaks to our server and has our certificate.
    fn adapt_file(&self, file: &str) -> String {
        file.replace("127.0.0.1:8080", &self.server.to_string())
            .replace("/etc/ssl/svc/", &self.path_of(""))
    }
}

fn caddyfile(folder: &ProxyFolder) -> String {
    let (http, https) = (folder.http, folder.https);
    format!(
        "{{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\tdefault_bind 127.0.0.1\n\thttp_port {http}\n\thttps_port {https}\n\tstorage file_system {}\n}}\n{}",
        folder.path_of("storage"),
        folder.adapt_file(include_str!("../../../docs/proxy/Caddyfile"))
    )
}

fn nginx_conf(folder: &ProxyFolder) -> String {
    let (http, https) = (folder.http, folder.https);
    let file = include_str!("../../../docs/proxy/nginx.conf");
    let lines = file.lines().filter(|line| !line.contains("[::]"));
    let file = lines.collect::<Vec<_>>().join("\n");
    let file = folder
        .adapt_file(&file)
        .replace("listen 80;", &format!("listen 127.0.0.1:{http};"))
        .replace("listen 443 ", &format!("listen 127.0.0.1:{https} "));
    assert!(file.contains(&format!(":{https} ssl http2;")), "{file}");
    let user = if rustix::process::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {};", folder.path_of(name)));
    format!(
        "daemon off; {user} pid {}; error_log stderr;\nevents {{}}\nhttp {{ access_log off; {}\n{file}\n}}\n",
        folder.path_of("pid"),
        temporary.concat()
    )
}

/// Longest time that a proxy has to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// A proxy that runs. Dropping it ends it.
pub(super) struct RunningProxy(Child);

impl RunningProxy {
    pub(super) fn start(kind: &ProxyProgram, program: &Path, folder: &ProxyFolder) -> Self {
        let file = folder.home.path().join("proxy.conf");
        std::fs::write(&file, (kind.configure)(folder)).unwrap();
        let mut command = Command::new(program);
        command
            .args((kind.arguments)(&file))
            .env("HOME", folder.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.path_of("log")).unwrap());
        Self(command.spawn().unwrap())
    }
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        // nginx ends its workers when it is asked to end, and leaves them when it is killed. Caddy waits for streams, which this thread has.
        let id = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let deadline = Instant::now() + END_TIMEOUT;
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(END_TIMEOUT / 100);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that is free and stays so: below those that the system gives to every other server and client of the suite.
pub(super) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 1_000).unwrap() * 10;
    std::iter::repeat_with(|| first + NEXT.fetch_add(1, Ordering::Relaxed))
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .unwrap()
}

pub(super) fn find_program(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap();
    let mut folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.find_map(|folder| Some(folder.join(program)).filter(|file| file.is_file()));
    let must = std::env::var_os("SVC_TEST_EVERYTHING").is_some();
    assert!(found.is_some() || !must, "{program} is not installed");
    found
}

/// A certificate that nobody trusts, for all names of the site.
fn write_certificate(folder: &ProxyFolder) {
    let names = format!("subjectAltName=DNS:{HOST},DNS:*.{SITES}");
    let subject = format!("/CN={HOST}");
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
        .args(["-subj", &subject, "-addext", &names])
        .args(["-keyout", &folder.path_of("privkey.pem")])
        .args(["-out", &folder.path_of("fullchain.pem")])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(made.success());
}
