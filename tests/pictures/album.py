"""A server with a page whose visitors upload pictures, and its owner."""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BINARY = Path(os.environ.get("SVC_BIN", ROOT / "target/debug/svc")).resolve()
# How long a server may take to be ready; the first start compiles the guests.
START_SECONDS = 180
# Limits that are tested elsewhere.
RULES = ["op", "owner", "upload", "upload_deployment", "file"]
LIMITS = [f"{rule}_{part}" for rule in RULES for part in ("per_minute", "burst")] + ["upload_day_bytes"]


class Album:
    """A server with a page whose visitors upload pictures."""

    def __init__(self, directory):
        settings = Path(directory, "svc.toml")
        settings.write_text("[limits]\n" + "".join(f"{name} = 1000000000\n" for name in LIMITS))
        self.data = Path(directory, "data")
        cache = BINARY.parent.parent / "tests-cache"
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        serve = [BINARY, "serve", "--listen", "127.0.0.1:0", "--config", settings, "--data", self.data, "--cache", cache]
        self.process = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = f"http://localhost:{self.process.stdout.readline().strip().rsplit(':', 1)[-1]}"
        self.wait_until_ready()
        command = [BINARY, "namespace", "create", "acme", "--data", self.data, "--json"]
        self.credential = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["credential"]
        project = self.ask("POST", "", {"name": "Album"})["id"]
        self.ask("POST", f"/{project}/backend", {"ddl": "CREATE TABLE photos (file TEXT REFERENCES svc_files(id));"})
        actions = [
            {"name": "add", "sql": "INSERT INTO photos VALUES (:svc_file)", "files": {"types": ["image/*"], "anonymous": True}},
            {"name": "add_sizes", "sql": "INSERT INTO photos VALUES (:svc_file)", "files": {"sizes": [64, 2048], "anonymous": True}},
            {"name": "see", "sql": "SELECT 1 FROM photos WHERE file = :svc_file"},
        ]
        self.ask("PUT", f"/{project}/backend/actions", {"actions": actions})
        self.ask("POST", f"/{project}/frontends", {"type": "html", "content": "<p>Album", "requested_slug": "album"})

    def wait_until_ready(self):
        """Waits until the server takes pictures."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/readyz"):
                    return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def ask(self, method, path, body):
        """Calls the server as the owner."""
        headers = {"authorization": f"Bearer {self.credential}"}
        request = urllib.request.Request(f"{self.url}/api/v1/projects{path}", json.dumps(body).encode(), headers, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or "null")

    def upload(self, action, file):
        """Uploads a file as anybody; returns the status and the document of the answer."""
        headers = {"content-type": "application/octet-stream"}
        request = urllib.request.Request(f"{self.url}/album/api/files/{action}", file, headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.loads(refusal.read())

    def download(self, file):
        """Returns a file as anybody gets it."""
        with urllib.request.urlopen(f"{self.url}/album/api/files/see/{file}") as answer:
            return answer.read()

    def peak_memory(self):
        """Returns the most memory that the server had at once, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def stop(self):
        """Stops the server; returns its status."""
        self.process.terminate()
        return self.process.wait(timeout=30)
