"""Holds a built server to its own description, by schemathesis: every phase and every check, with a fixed seed.

Takes the server's binary from SVC_BIN and the seed from SVC_SEED; every argument goes on to schemathesis.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BINARY = Path(os.environ.get("SVC_BIN", ROOT / "target/debug/svc")).resolve()
SEED = os.environ.get("SVC_SEED", "1")
# Limits are tested elsewhere; here they would only hide the answers.
PLENTY = 1_000_000_000
RULES = ["deploy", "mcp", "op", "op_deployment", "auth", "report", "owner", "preview", "sign_in", "upload"]
LIMITS = [f"{rule}_{part}" for rule in RULES for part in ("per_minute", "burst")]
LIMITS += ["projects_free", "projects_pro", "active_deployments", "backends"]
# How long a server may take to be ready; the first start compiles the guests.
START_SECONDS = 180


def run_operator_command(data, *command):
    """Runs an operator's command on the server's data directory and returns its answer."""
    run = subprocess.run(
        [BINARY, *command, "--data", data, "--json"], check=True, capture_output=True, text=True
    )
    return json.loads(run.stdout)


def send_request(url, method, path, body=None, credential=None):
    """Calls the server and returns its JSON answer."""
    headers = {"authorization": f"Bearer {credential}"} if credential else {}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def security_override(name, credential):
    """Returns who calls with a credential, in the form of Web Fuzzing Commons."""
    return {"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {credential}"}]}


def wait_until_ready(url):
    """Waits until the server publishes."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"{url}/readyz"):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def create_fixtures(url, credential):
    """Makes something of every kind; returns dictionaries of what requests may name, and what `hooks.py` must know."""
    projects = "/api/v1/projects"
    project = send_request(url, "POST", projects, {"name": "House"}, credential)["id"]
    below = f"{projects}/{project}"
    ddl = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);"
    send_request(url, "POST", f"{below}/backend", {"ddl": ddl}, credential)
    actions = [
        {"name": "add_note", "sql": "INSERT INTO notes (text) VALUES (:text) RETURNING id"},
        {"name": "get_note", "sql": "SELECT id, text FROM notes WHERE id = :id"},
    ]
    send_request(url, "PUT", f"{below}/backend/actions", {"actions": actions}, credential)
    live = {}
    for slug in ["journal", "notes"]:
        page = {"type": "html", "content": "<p>Nothing yet", "requested_slug": slug}
        frontend = send_request(url, "POST", f"{below}/frontends", page, credential)
        revisions = send_request(url, "GET", f"{below}/frontends/{slug}/revisions", None, credential)
        live[slug] = revisions["active_revision_id"]
    edit = {"find": "Nothing yet", "replace": "Water the beans"}
    draft = {"base_revision_id": live["notes"], "edits": [edit]}
    draft = send_request(url, "POST", f"{below}/frontends/notes/revisions", draft, credential)["revision"]["revision_id"]
    share = {"content": "# Minutes", "type": "markdown", "name": "minutes", "password": "tea-at-five"}
    send_request(url, "POST", "/api/v1/deploy", share)
    with urllib.request.urlopen(f"{url}/notes") as answer:
        runtime = answer.read().decode().split("/_svc/runtime/")[1].split('"')[0]
    dictionaries = {
        "projects": [project],
        "deployments": [frontend["id"]],
        "revisions": [live["notes"], draft],
        "still_revisions": [live["journal"]],
        "runtimes": [runtime],
    }
    starts = {
        "SVC_PROJECT": project,
        "SVC_LIVE": live["notes"],
        "SVC_DRAFT": draft,
        "SVC_STILL_LIVE": live["journal"],
    }
    return dictionaries, starts


def main():
    with tempfile.TemporaryDirectory(prefix="svc-schemathesis-") as directory:
        data = Path(directory, "data")
        settings = Path(directory, "svc.toml")
        settings.write_text("[limits]\n" + "".join(f"{name} = {PLENTY}\n" for name in LIMITS))
        cache = BINARY.parent.parent / "tests-cache"
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        serve = [BINARY, "serve", "--listen", "127.0.0.1:0", "--config", settings, "--data", data, "--cache", cache]
        log = Path(directory, "log")
        with log.open("wb") as errors:
            server = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            port = server.stdout.readline().strip().rsplit(":", 1)[-1]
            if not port:
                sys.exit(f"the server did not start:\n{log.read_text()}")
            url = f"http://localhost:{port}"
            wait_until_ready(url)
            owners = {name: run_operator_command(data, "namespace", "create", name)["credential"] for name in ["acme", "globex"]}
            dictionaries, starts = create_fixtures(url, owners["acme"])
            credentials = Path(directory, "credentials.json")
            credentials.write_text(json.dumps({"auth": [security_override(*owner) for owner in owners.items()]}))
            added = [f"[dictionaries.{name}]\nvalues = {json.dumps(values)}\n" for name, values in dictionaries.items()]
            settings = Path(directory, "schemathesis.toml")
            settings.write_text(Path(HERE, "schemathesis.toml").read_text() + "".join(added))
            environment = {**os.environ, **starts, "SVC_CREDENTIALS": str(credentials), "SVC_HOOKS": str(HERE / "hooks.py")}
            tool = [Path(sys.executable).with_name("schemathesis"), "--config-file", settings]
            run = ["run", f"{url}/api/v1/openapi.json", "--seed", SEED, *sys.argv[1:]]
            found = subprocess.run([*tool, *run], cwd=directory, env=environment).returncode
        finally:
            server.terminate()
            ended = server.wait(timeout=30)
        if found or ended:
            print(log.read_text()[-4000:], file=sys.stderr)
        sys.exit(found or ended)


if __name__ == "__main__":
    main()
