//! Caddy and nginx: the files of `docs/` as each program is started with them.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::{HOST, SITES};

/// A proxy: its program, its file, and how both come to run on ports of ours.
pub(super) struct Kind {
    pub(super) program: &'static str,
    settle: fn(&Place) -> String,
    arguments: fn(&Path) -> Vec<String>,
}

pub(super) const CADDY: Kind = Kind {
    program: "caddy",
    settle: caddyfile,
    arguments: |file| {
        let file = file.to_str().unwrap().to_owned();
        ["run", "--adapter", "caddyfile", "--config"]
            .map(str::to_owned)
            .into_iter()
            .chain([file])
            .collect()
    },
};

pub(super) const NGINX: Kind = Kind {
    program: "nginx",
    settle: nginx_conf,
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
pub(super) struct Place {
    home: TempDir,
    server: SocketAddr,
    pub(super) http: u16,
    pub(super) https: u16,
}

impl Place {
    /// A place in front of a server, with a certificate for its names.
    pub(super) fn new(server: SocketAddr, http: u16, https: u16) -> Self {
        let place = Self {
            home: TempDir::new().unwrap(),
            server,
            http,
            https,
        };
        certify(&place);
        place
    }

    /// A path in its folder.
    fn at(&self, name: &str) -> String {
        self.home.path().join(name).display().to_string()
    }

    /// A file of ours, which speaks to our server and has our certificate.
    fn settled(&self, file: &str) -> String {
        file.replace("127.0.0.1:8080", &self.server.to_string())
            .replace("/etc/ssl/svc/", &self.at(""))
    }
}

fn caddyfile(place: &Place) -> String {
    let (http, https) = (place.http, place.https);
    format!(
        "{{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\tdefault_bind 127.0.0.1\n\thttp_port {http}\n\thttps_port {https}\n\tstorage file_system {}\n}}\n{}",
        place.at("storage"),
        place.settled(include_str!("../../../docs/proxy/Caddyfile"))
    )
}

fn nginx_conf(place: &Place) -> String {
    let (http, https) = (place.http, place.https);
    let file = include_str!("../../../docs/proxy/nginx.conf");
    let lines = file.lines().filter(|line| !line.contains("[::]"));
    let file = lines.collect::<Vec<_>>().join("\n");
    let file = place
        .settled(&file)
        .replace("listen 80;", &format!("listen 127.0.0.1:{http};"))
        .replace("listen 443 ", &format!("listen 127.0.0.1:{https} "));
    assert!(file.contains(&format!(":{https} ssl http2;")), "{file}");
    let user = if rustix::process::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {};", place.at(name)));
    format!(
        "daemon off; {user} pid {}; error_log stderr;\nevents {{}}\nhttp {{ access_log off; {}\n{file}\n}}\n",
        place.at("pid"),
        temporary.concat()
    )
}

/// A proxy that runs. Dropping it ends it.
pub(super) struct Running(Child);

impl Running {
    pub(super) fn start(kind: &Kind, program: &Path, place: &Place) -> Self {
        let file = place.home.path().join("proxy.conf");
        std::fs::write(&file, (kind.settle)(place)).unwrap();
        let mut command = Command::new(program);
        command
            .args((kind.arguments)(&file))
            .env("HOME", place.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(place.at("log")).unwrap());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // nginx ends its workers when it is asked to end, and leaves them when it is killed.
        let id = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

pub(super) fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap();
    let mut folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.find_map(|folder| Some(folder.join(program)).filter(|file| file.is_file()));
    let must = std::env::var_os("SVC_TEST_EVERYTHING").is_some();
    assert!(found.is_some() || !must, "{program} is not installed");
    found
}

/// A certificate that nobody trusts, for all names of the site.
fn certify(place: &Place) {
    let names = format!("subjectAltName=DNS:{HOST},DNS:*.{SITES}");
    let subject = format!("/CN={HOST}");
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
        .args(["-subj", &subject, "-addext", &names])
        .args(["-keyout", &place.at("privkey.pem")])
        .args(["-out", &place.at("fullchain.pem")])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(made.success());
}
