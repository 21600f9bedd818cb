//! Servers that lie, and folders that somebody else has filled: no command writes where it was not told to, replaces what it was not
//! told to, hangs, fills the memory, or lets a stranger's text steer the terminal.

mod bounds;
mod files;
mod names;

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use serde_json::{Value, json};
use svc_tests::{Output, run_command};

use self::names::{VictimFolder, assert_terminal_safe};
use super::failures::serve_router;
use crate::svc;

const ID: &str = "01a1fc28-c57b-71f4-90db-2871ff5bd43a";

/// Field of an answer that the server forges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForgedField {
    Slug,
    Action,
    Label,
    Id,
    Url,
    Project,
}

/// Field that the server forges, and its value.
type SharedForgery = Arc<Mutex<(ForgedField, Value)>>;

/// Starts a server that has a project with a page and a database; the field that it forges begins with its true value.
async fn serve_forgery() -> (SharedForgery, SocketAddr) {
    let lie: SharedForgery = Arc::new(Mutex::new((ForgedField::Slug, Value::from("page"))));
    let router = Router::new().fallback(any(answer));
    let server = serve_router(router.with_state(Arc::clone(&lie))).await;
    (lie, server)
}

/// Starts such a server, beside a folder with a victim.
async fn start_forgery() -> (VictimFolder, SharedForgery, SocketAddr) {
    let (lie, server) = serve_forgery().await;
    (VictimFolder::new(), lie, server)
}

async fn answer(State(lie): State<SharedForgery>, request: Request) -> Response {
    let (member, value) = lie.lock().unwrap().clone();
    let told = |which: ForgedField, truth: &str| match which == member {
        true => value.clone(),
        false => Value::from(truth),
    };
    let digest = "0".repeat(64);
    let page = json!({
        "id": ID, "slug": told(ForgedField::Slug, "page"), "url": told(ForgedField::Url, "http://shop-acme.localhost/page"), "type": "markdown",
        "title": "Page", "state": "active", "visits": 0, "content_sha256": digest, "active_revision_id": ID,
    });
    let project = json!({
        "id": told(ForgedField::Id, ID), "name": told(ForgedField::Project, "Shop"), "host_label": told(ForgedField::Label, "shop-acme"),
        "description": null, "home": null, "url": "http://shop-acme.localhost", "backend": {"id": ID},
    });
    let backend = json!({
        "id": ID, "migrations": [{"version": 1, "checksum": digest, "sql": "CREATE TABLE theirs (id INTEGER);"}],
        "actions": [{"name": told(ForgedField::Action, "theirs"), "sql": "SELECT 'theirs'", "checksum": digest, "version": 1, "kind": "read"}],
        "realtime": {"enabled": false}, "agents": false,
    });
    let path = request.uri().path();
    let is_read = request.method() == Method::GET;
    let last = path.rsplit('/').next().unwrap_or_default();
    let document = match last {
        "projects" if is_read => json!({ "projects": [project] }),
        "projects" => project,
        "frontends" if is_read => json!({ "frontends": [page] }),
        "content" => {
            json!({ "content": "# Theirs\n", "type": "markdown", "content_sha256": digest })
        }
        "revisions" if is_read => json!({ "active_revision_id": ID, "revisions": [] }),
        "backend" => backend,
        "catalog" => json!({ "products": [] }),
        "export" => return "SQLite format 3\0theirs".into_response(),
        _ => page,
    };
    axum::Json(document).into_response()
}

/// A command in the trap, of an owner without a terminal.
fn command(trap: &VictimFolder, server: SocketAddr, arguments: &[&str]) -> Command {
    let mut command: Command = svc().command();
    command
        .args(arguments)
        .current_dir(trap.work())
        .env("XDG_CONFIG_HOME", trap.path_of("home"))
        .env("SVC_SERVER", format!("http://{server}"))
        .env("SVC_CREDENTIAL", "svc_wrongwro_0")
        .stdin(Stdio::null());
    command
}

/// Runs such a command to its end.
async fn run(trap: &VictimFolder, server: SocketAddr, arguments: &[&str]) -> Output {
    let output = run_command(command(trap, server, arguments)).await;
    assert_terminal_safe(&output.stdout, &format!("{arguments:?}"));
    assert_terminal_safe(&output.stderr, &format!("{arguments:?}"));
    output
}

/// Asserts that a command refuses every invalid name in each of these fields, and changes nothing.
async fn assert_names_refused(members: &[ForgedField], arguments: &[&str]) {
    let (trap, lie, server) = start_forgery().await;
    let before = trap.snapshot();
    for member in members {
        let mut lies: Vec<Value> = trap.names().map(Value::from).collect();
        let longest = Value::from("a".repeat(100_000));
        lies.extend([
            longest,
            json!(5),
            json!(true),
            json!(["a"]),
            json!({"a": 1}),
        ]);
        // An identifier may be any word, and names no file.
        lies.retain(|told| *member != ForgedField::Id || (told != "CON"));
        for told in lies {
            *lie.lock().unwrap() = (*member, told.clone());
            let output = run(&trap, server, arguments).await;
            let case = format!("{arguments:?} {member:?} {told}: {output:?}");
            assert_eq!(output.code, Some(6), "{case}");
            assert!(output.stderr.len() < 1000, "{case}");
            assert!(trap.snapshot() == before, "{case}");
        }
    }
}

#[tokio::test]
async fn pull_takes_no_name_that_is_none() {
    let pull = ["pull", "copy", "--project", "Shop", "--yes"];
    assert_names_refused(
        &[ForgedField::Slug, ForgedField::Action, ForgedField::Label],
        &pull,
    )
    .await;
}

#[tokio::test]
async fn export_takes_no_name_that_is_none() {
    assert_names_refused(&[ForgedField::Label], &["backend", "export"]).await;
    assert_names_refused(&[ForgedField::Id], &["backend", "export", "--force"]).await;
}

#[tokio::test]
async fn content_takes_no_name_that_is_none() {
    let content = [
        "frontend",
        "content",
        "page",
        "-o",
        "copy/out.md",
        "--force",
    ];
    assert_names_refused(&[ForgedField::Id, ForgedField::Label], &content).await;
}

#[tokio::test]
async fn apply_takes_no_name_that_is_none() {
    let (trap, lie, server) = start_forgery().await;
    let manifest = "project = 'Shop'\n[pages]\nmine = 'page.md'\n";
    std::fs::write(trap.path_of("work/copy/svc.toml"), manifest).unwrap();
    let before = trap.snapshot();
    for member in [ForgedField::Slug, ForgedField::Action, ForgedField::Url] {
        for told in trap.names() {
            *lie.lock().unwrap() = (member, Value::from(told.clone()));
            let output = run(&trap, server, &["apply", "copy", "--yes"]).await;
            assert_eq!(output.code, Some(6), "{member:?} {told:?}: {output:?}");
            assert!(trap.snapshot() == before, "{member:?} {told:?}");
        }
    }
}

/// Hostile names of pages in a foreign folder: nothing outside of the folder is read, and no server is started for it.
#[tokio::test]
async fn dev_and_apply_follow_no_manifest_out_of_its_folder() {
    let (trap, _, server) = start_forgery().await;
    let manifest = trap.path_of("work/copy/svc.toml");
    for name in trap.names() {
        // TOML reads JSON's strings.
        let text = format!("project = 'Shop'\n[pages]\nmine = {}\n", json!(name));
        std::fs::write(&manifest, text).unwrap();
        let before = trap.snapshot();
        for command in [&["dev", "copy"][..], &["apply", "copy", "--yes"]] {
            let output = run(&trap, server, command).await;
            let case = format!("{command:?} {name:?}: {output:?}");
            assert!(!output.success, "{case}");
            assert!(!output.stdout.contains("mine"), "{case}");
            assert!(trap.snapshot() == before, "{case}");
        }
    }
}

/// Such names for a page that the server has: new files are made in the folder, and no file that is there changes.
#[tokio::test]
async fn pull_follows_no_manifest_out_of_its_folder() {
    let (trap, _, server) = start_forgery().await;
    let manifest = trap.path_of("work/copy/svc.toml");
    for name in trap.names() {
        let text = format!("project = 'Shop'\n[pages]\npage = {}\n", json!(name));
        std::fs::write(&manifest, text).unwrap();
        let before = trap.snapshot();
        let output = run(&trap, server, &["pull", "copy"]).await;
        let after = trap.snapshot();
        let kept = |(path, found)| after.get(path) == Some(found);
        assert!(before.iter().all(kept), "{name:?}: {output:?}");
        let folder = trap.path_of("work/copy");
        let mut made = after.keys().filter(|path| !before.contains_key(*path));
        assert!(
            made.all(|path| path.starts_with(&folder)),
            "{name:?}: {output:?}"
        );
    }
}

/// A truthful but foreign server: existing files stay, unless the user says otherwise.
#[tokio::test]
async fn nothing_is_replaced_unasked() {
    let (trap, _, server) = start_forgery().await;
    std::fs::write(trap.path_of("work/shop-acme.db"), "mine").unwrap();
    let before = trap.snapshot();
    for (arguments, number) in [
        (&["pull", "copy", "--project", "Shop"][..], 8),
        (&["backend", "export"], 1),
        (&["backend", "export", "-o", "copy/out.md"], 1),
        (&["frontend", "content", "page", "-o", "copy/out.md"], 1),
        (&["frontend", "content", "page", "-o", "copy"], 1),
        (&["frontend", "content", "page", "-o", "copy", "--force"], 1),
        (&["frontend", "content", "page", "-o", ".."], 1),
    ] {
        let output = run(&trap, server, arguments).await;
        assert_eq!(output.code, Some(number), "{arguments:?}: {output:?}");
        assert!(trap.snapshot() == before, "{arguments:?}: {output:?}");
    }
    let forced = [
        "frontend",
        "content",
        "page",
        "-o",
        "copy/out.md",
        "--force",
    ];
    let output = run(&trap, server, &forced).await;
    assert!(output.success, "{output:?}");
    let written = std::fs::read_to_string(trap.path_of("work/copy/out.md")).unwrap();
    assert_eq!(written, "# Theirs\n");
}

/// A project may have any name: it is shown as one line, and the manifest that `pull` writes says nothing else.
#[tokio::test]
async fn a_projects_name_is_data() {
    let trap = VictimFolder::new();
    let (lie, server) = serve_forgery().await;
    let outside = |trap: &VictimFolder| {
        let mut tree = trap.snapshot();
        tree.retain(|path, _| !path.starts_with(trap.path_of("work/new")));
        tree
    };
    let before = outside(&trap);
    for name in trap.names().filter(|name| !name.trim().is_empty()) {
        *lie.lock().unwrap() = (ForgedField::Project, Value::from(name.clone()));
        let output = run(&trap, server, &["pull", "new", "--project", "shop-acme"]).await;
        assert!(output.success, "{name:?}: {output:?}");
        let manifest = std::fs::read_to_string(trap.path_of("work/new/svc.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&manifest).unwrap();
        assert_eq!(manifest["project"].as_str(), Some(name.as_str()));
        assert_eq!(manifest["pages"].as_table().unwrap().len(), 1, "{name:?}");
        let shown = run(&trap, server, &["project", "list"]).await;
        assert_eq!(shown.stdout.lines().count(), 2, "{name:?}: {shown:?}");
        std::fs::remove_dir_all(trap.path_of("work/new")).unwrap();
        assert!(outside(&trap) == before, "{name:?}");
    }
}

/// A file's name may have been chosen by somebody else, too.
#[tokio::test]
async fn a_files_name_is_one_line() {
    let (trap, _, server) = start_forgery().await;
    let name = json!("new\n+ forged.md");
    let manifest = format!("project = 'Shop'\n[pages]\npage = {name}\n");
    std::fs::write(trap.path_of("work/copy/svc.toml"), manifest).unwrap();
    let output = run(&trap, server, &["pull", "copy"]).await;
    assert!(output.success, "{output:?}");
    let shown = "+ copy/new\\n+ forged.md\n";
    assert!(output.stdout.contains(shown), "{output:?}");
}

/// Two things of one name would be one file.
#[tokio::test]
async fn a_name_that_comes_twice_is_refused() {
    let trap = VictimFolder::new();
    let digest = "0".repeat(64);
    let action = |sql: &str| json!({"name": "theirs", "sql": sql, "checksum": digest});
    let backend = json!({
        "id": ID, "migrations": [], "realtime": {"enabled": false}, "actions": [action("SELECT 1"), action("SELECT 2")],
    });
    let project = json!({"id": ID, "name": "Shop", "host_label": "shop-acme", "description": null, "home": null, "backend": {"id": ID}});
    let answer = async move |request: Request| {
        let path = request.uri().path().to_owned();
        axum::Json(match path.rsplit('/').next().unwrap_or_default() {
            "projects" => json!({ "projects": [project] }),
            "frontends" => json!({ "frontends": [] }),
            "catalog" => json!({ "products": [] }),
            _ => backend,
        })
    };
    let server = serve_router(Router::new().fallback(any(answer))).await;
    let output = run(&trap, server, &["pull", "new", "--project", "Shop"]).await;
    assert_eq!(output.code, Some(6), "{output:?}");
    assert!(output.stderr.contains("theirs.sql"), "{output:?}");
    assert!(!trap.path_of("work/new/actions").exists());
}

/// Parts of a path that would make it another path never reach a server: `delete ..` is not the deletion of what is above.
#[tokio::test]
async fn no_argument_leads_a_request_astray() {
    let trap = VictimFolder::new();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&asked);
    let project = json!({"id": ID, "name": "Shop", "host_label": "shop-acme", "description": null, "home": null, "backend": null});
    let answer = async move |request: Request| {
        let line = format!("{} {}", request.method(), request.uri().path());
        heard.lock().unwrap().push(line);
        axum::Json(json!({ "projects": [project] }))
    };
    let server = serve_router(Router::new().fallback(any(answer))).await;
    for part in ["..", ".", ""] {
        for arguments in [
            &["frontend", "delete", part, "--yes"][..],
            &["frontend", "content", part],
            &["revision", "show", "page", part],
            &["action", "call", "theirs", "--page", part],
        ] {
            let output = run(&trap, server, arguments).await;
            assert_eq!(output.code, Some(4), "{arguments:?}: {output:?}");
        }
    }
    let asked = asked.lock().unwrap();
    assert!(
        asked.iter().all(|line| line == "GET /api/v1/projects"),
        "{asked:?}"
    );
}
