//! Packages, as far as they are cheap: the Debian package of the program under test, and its units.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use svc_tests::{Output, run_command, wait_until};
use tempfile::TempDir;

use crate::svc;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Whether a program of the system is there; the continuous integration has all of them.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let must = std::env::var_os("SVC_TEST_EVERYTHING").is_some();
    assert!(found || !must, "{program} is not installed");
    found
}

async fn run(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments);
    run_command(command).await
}

async fn command_output(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments).await;
    assert!(output.success, "{program} {arguments:?}: {output:?}");
    output.stdout
}

#[tokio::test]
async fn the_debian_package_has_all_that_belongs_to_it() {
    if !is_installed("dpkg-deb") {
        return;
    }
    let out = TempDir::new().unwrap();
    let program = svc().command().get_program().to_owned();
    let mut make = Command::new(root().join("packaging/deb"));
    make.arg(program)
        .arg(out.path())
        .env("SVC_DEB_COMPRESSION", "none");
    let made = run_command(make).await;
    assert!(made.success, "{made:?}");
    let package = made.stdout.trim_end();
    let version = env!("CARGO_PKG_VERSION");
    let name = package.rsplit('/').next().unwrap();
    assert!(name.starts_with(&format!("svc_{version}_")), "{name}");

    let listed = command_output("dpkg-deb", &["--contents", package]).await;
    let files: BTreeMap<&str, &str> = listed
        .lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            let mode = words.next().unwrap();
            assert_eq!(words.next(), Some("root/root"), "{line}");
            (words.next_back().unwrap(), mode)
        })
        .collect();
    for (file, mode) in [
        ("./usr/bin/svc", "-rwxr-xr-x"),
        ("./etc/svc/svc.toml", "-rw-r-----"),
        ("./usr/lib/systemd/system/svc.service", "-rw-r--r--"),
        ("./usr/lib/systemd/system/svc-backup.service", "-rw-r--r--"),
        ("./usr/lib/systemd/system/svc-backup.timer", "-rw-r--r--"),
        ("./usr/share/man/man1/svc.1.gz", "-rw-r--r--"),
        ("./usr/share/man/man1/svc-publish.1.gz", "-rw-r--r--"),
        ("./usr/share/bash-completion/completions/svc", "-rw-r--r--"),
        ("./usr/share/zsh/vendor-completions/_svc", "-rw-r--r--"),
        (
            "./usr/share/fish/vendor_completions.d/svc.fish",
            "-rw-r--r--",
        ),
        ("./usr/share/doc/svc/copyright", "-rw-r--r--"),
        ("./usr/share/doc/svc/examples/Caddyfile", "-rw-r--r--"),
        ("./usr/share/doc/svc/examples/nginx.conf", "-rw-r--r--"),
    ] {
        assert_eq!(files.get(file), Some(&mode), "{file} in\n{listed}");
    }
    for (file, mode) in &files {
        let is_open = mode.as_bytes()[8] == b'w';
        assert!(!is_open, "everybody may write {file}");
    }

    let control = TempDir::new().unwrap();
    let control = control.path().to_str().unwrap();
    command_output("dpkg-deb", &["--control", package, control]).await;
    let read = |name: &str| std::fs::read_to_string(Path::new(control).join(name)).unwrap();
    assert_eq!(read("conffiles"), "/etc/svc/svc.toml\n");
    // Debian has another `svc`.
    assert!(read("control").contains("Conflicts: daemontools\n"));
    for script in ["postinst", "prerm", "postrm"] {
        let script = format!("{control}/{script}");
        command_output("sh", &["-n", &script]).await;
    }
    let tree = TempDir::new().unwrap();
    let tree = tree.path().to_str().unwrap();
    command_output("dpkg-deb", &["--extract", package, tree]).await;
    let sums = format!("cd {tree} && md5sum --quiet --check {control}/md5sums");
    command_output("sh", &["-c", &sums]).await;
    let installed = command_output(&format!("{tree}/usr/bin/svc"), &["--version"]).await;
    assert_eq!(installed, format!("svc {version}\n"));
    let effective = ["config", "--config", &format!("{tree}/etc/svc/svc.toml")];
    let effective = command_output(&format!("{tree}/usr/bin/svc"), &effective).await;
    assert!(effective.contains("data = \"/var/lib/svc\""), "{effective}");
}

#[tokio::test]
async fn a_command_says_whether_the_server_is_well() {
    let data = TempDir::new().unwrap();
    let send_request = async |more: &[&str]| {
        let arguments = [&["healthcheck"], more].concat();
        svc().run(data.path(), &arguments).await
    };
    let none = send_request(&[]).await;
    assert_eq!(none.code, Some(1), "{none:?}");
    let create = ["namespace", "create", "acme"];
    let made = svc().run(data.path(), &create).await;
    assert!(made.success, "{made:?}");
    let never = send_request(&[]).await;
    assert_eq!(never.code, Some(1), "{never:?}");
    assert!(never.stderr.contains("no server has run"), "{never:?}");

    let server = svc().serve(data.path(), &[]).await;
    let well = async || Some(send_request(&[]).await).filter(|said| said.success);
    let well = wait_until("the guests to load", well).await;
    assert_eq!(well.stdout, "ready\n");
    let document = send_request(&["--json"]).await.json();
    assert_eq!(document["ready"], true);
    assert_eq!(document["address"], server.address().to_string());
    server.kill().await;
    let gone = send_request(&[]).await;
    assert_eq!(gone.code, Some(1), "{gone:?}");
    let address = document["address"].as_str().unwrap();
    assert!(gone.stderr.contains(address), "{gone:?}");
}

#[tokio::test]
async fn the_units_are_right_and_closed() {
    if !is_installed("systemd-analyze") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let packaging = root().join("packaging");
    let program = svc().command().get_program().to_owned();
    let units = ["svc.service", "svc-backup.service", "svc-backup.timer"];
    for unit in units {
        let text = std::fs::read_to_string(packaging.join(unit)).unwrap();
        // Not installed here: the program under test stands in, and its user is ours.
        let text = text
            .replace("/usr/bin/svc", program.to_str().unwrap())
            .replace("User=svc\nGroup=svc\n", "");
        std::fs::write(folder.path().join(unit), text).unwrap();
    }
    for unit in units {
        let path = folder.path().join(unit);
        let verify = ["verify", "--man=no", path.to_str().unwrap()];
        let verified = run("systemd-analyze", &verify).await;
        // What it says of this machine's own units is not ours.
        let wrong = verified.stderr.lines().find(|line| line.contains("svc"));
        assert_eq!(wrong, None, "{verified:?}");
    }
    for (unit, most) in [("svc.service", "20"), ("svc-backup.service", "10")] {
        let path = packaging.join(unit);
        let threshold = format!("--threshold={most}");
        let judge = ["security", "--offline=yes", "--no-pager", &threshold];
        let judge = [&judge[..], &[path.to_str().unwrap()]].concat();
        let judged = run("systemd-analyze", &judge).await;
        assert!(judged.success, "{unit}: {}", judged.stdout);
    }
}

#[test]
fn the_server_may_write_where_it_is_asked_for_backups() {
    let read = |unit| std::fs::read_to_string(root().join("packaging").join(unit)).unwrap();
    let value = |text: &str, start: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(start));
        found.unwrap().to_owned()
    };
    let asks = value(
        &read("svc-backup.service"),
        "ExecStart=/usr/bin/svc backup ",
    );
    let directory = asks.split(' ').next().unwrap();
    let writes = value(&read("svc.service"), "StateDirectory=");
    let mut writes = writes.split(' ').map(|name| format!("/var/lib/{name}"));
    assert!(writes.any(|path| path == directory), "{directory}");
}
