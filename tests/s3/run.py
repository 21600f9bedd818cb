"""Content in a bucket of a store that others wrote: moto's S3, which checks every signature by botocore's rules.

Takes the server's binary from SVC_BIN. With `--suite` it runs the suite's own tests of storage there, too, by cargo.
"""

import concurrent.futures
import hashlib
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import boto3

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BINARY = Path(os.environ.get("SVC_BIN", ROOT / "target/debug/svc")).resolve()
CACHE = BINARY.parent.parent / "tests-cache"
BUCKET = "pages"
# How long a server may take to be ready; the first start compiles the guests.
START_SECONDS = 180
# How long a request may take while the store does not answer: a request to it has 20 seconds, and the machine is busy.
AWAY_SECONDS = 40


class Store:
    """moto as a process, with a bucket and a key for it."""

    def __init__(self):
        script = [sys.executable, HERE / "stand_in.py"]
        self.process = subprocess.Popen(script, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.endpoint = f"http://127.0.0.1:{self.process.stdout.readline().strip()}"
        anybody = {"aws_access_key_id": "anybody", "aws_secret_access_key": "anybody"}
        self.client("s3", **anybody).create_bucket(Bucket=BUCKET)
        iam = self.client("iam", **anybody)
        iam.create_user(UserName="svc")
        allowed = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket"]
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": allowed, "Resource": "*"}]}
        iam.put_user_policy(UserName="svc", PolicyName="pages", PolicyDocument=json.dumps(policy))
        key = iam.create_access_key(UserName="svc")["AccessKey"]
        self.environment = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        }
        ours = {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}
        self.s3 = self.client("s3", **ours)

    def client(self, service, **key):
        """Returns a client that whoever has the key would use."""
        return boto3.client(service, endpoint_url=self.endpoint, region_name="us-east-1", **key)

    def names(self, prefix):
        """Returns the names of all objects below a prefix."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [found["Key"] for page in pages for found in page.get("Contents", [])]

    def put(self, name, body):
        """Writes an object."""
        self.s3.put_object(Bucket=BUCKET, Key=name, Body=body)


class Svc:
    """A server as a process, with its content below a prefix of the bucket, or in its data."""

    def __init__(self, store, data, prefix, **changed):
        environment = {"PATH": os.environ["PATH"], "SVC_CACHE": str(CACHE), **store.environment, **changed}
        if prefix:
            environment["SVC_CONTENT_URL"] = f"s3://{BUCKET}/{prefix}"
        limits = Path(data).with_suffix(".toml")
        limits.write_text("[limits]\ndeploy_burst = 1000000\n")
        serve = [BINARY, "serve", "--listen", "127.0.0.1:0", "--config", limits, "--data", data]
        self.data = data
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment)
        said = self.process.stdout.readline().strip()
        if not said:
            self.process.wait()
            raise RefusedStart(self.said())
        self.url = said.removeprefix("ready ")
        deadline = time.monotonic() + START_SECONDS
        while self.ask("/readyz")[0] != 200:
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.05)

    def said(self):
        """Returns what it has logged."""
        self.log.seek(0)
        return self.log.read()

    def ask(self, path, body=None, key=None, method=None):
        """Returns the status and the body of an answer. A body of bytes is sent as it is."""
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        data = body
        if body is not None and not isinstance(body, bytes):
            data, headers["content-type"] = json.dumps(body).encode(), "application/json"
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=AWAY_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def publish(self, name):
        """Publishes a page that says its name; returns the answer."""
        return self.ask("/api/v1/deploy", {"type": "html", "content": f"<p>of {name}", "name": name})

    def shows(self, name):
        """Holds it to a page and to its source."""
        for path in [f"/{name}", f"/{name}/raw"]:
            status, text = self.ask(path)
            assert status == 200 and f"<p>of {name}" in text, (path, status, text)

    def end(self, how=signal.SIGTERM):
        """Ends it by a signal."""
        self.process.send_signal(how)
        ended = self.process.wait(timeout=60)
        assert ended == (0 if how == signal.SIGTERM else -how), ended

    def operate(self, *command):
        """Runs an operator's command; returns its answer."""
        run = [BINARY, *command, "--data", self.data, "--json"]
        return json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)


class RefusedStart(Exception):
    """A start that was refused, with the log."""


def assert_start_refused(says, *start, **changed):
    """Holds a start to a refusal, which says something and tells no secret."""
    try:
        Svc(*start, **changed)
    except RefusedStart as error:
        text = str(error)
        assert says in text, text
        assert start[0].environment["AWS_SECRET_ACCESS_KEY"] not in text, text
    else:
        raise AssertionError(f"it started, and should have said: {says}")


def assert_problem(answer, status, code):
    """Holds an answer to be a problem."""
    assert answer[0] == status and json.loads(answer[1])["code"] == code, answer


def check_kills(store, data, prefix):
    """Whatever was answered before a kill is there after it."""
    published, ends = [], threading.Event()

    def go_on(server, who):
        for number in range(10_000):
            name = f"p-{who}-{len(published)}-{number}"
            try:
                if ends.is_set() or server.publish(name)[0] != 201:
                    return
            except OSError:
                return
            published.append(name)

    for _ in range(3):
        server = Svc(store, data, prefix)
        writers = [threading.Thread(target=go_on, args=(server, who)) for who in range(4)]
        before = len(published)
        for writer in writers:
            writer.start()
        while len(published) < before + 15:
            assert any(writer.is_alive() for writer in writers), server.said()
            time.sleep(0.01)
        server.end(signal.SIGKILL)
        for writer in writers:
            writer.join()
    ends.set()
    server = Svc(store, data, prefix)
    for name in published:
        server.shows(name)
    found = server.operate("check")
    assert found["errors"] == [], found
    print(f"{len(published)} pages outlived three kills, with {len(found['leftovers'])} objects left over")
    return server


def check_site_kills(store, server):
    """Sites of large files that were answered before a kill are there after it, and what was not leaves nothing that is wrong."""
    key = server.operate("namespace", "create", "kills", "--plan", "pro")["credential"]
    project = json.loads(server.ask("/api/v1/projects", {"name": "Kills"}, key)[1])["id"]
    published, data = {}, server.data
    for kill in range(3):
        answered = threading.Event()

        def go_on():
            for number in range(10_000):
                file = f"{kill}-{number}\n".encode() * 200_000
                digest = hashlib.sha256(file).hexdigest()
                slug = f"site-{kill}-{number}"
                files = {"large": {"sha256": digest}, "small": {"text": slug}}
                site = {"type": "site", "files": files, "requested_slug": slug}
                try:
                    blob = f"/api/v1/projects/{project}/blobs/{digest}"
                    assert server.ask(blob, file, key, "PUT")[0] == 204
                    made = server.ask(f"/api/v1/projects/{project}/frontends", site, key)
                except (OSError, http.client.HTTPException):
                    return
                assert made[0] == 201, made
                published[slug] = file
                if number >= 3:
                    answered.set()

        writer = threading.Thread(target=go_on)
        writer.start()
        assert answered.wait(AWAY_SECONDS), server.said()
        server.end(signal.SIGKILL)
        writer.join()
        server = Svc(store, data, "mine")
        for slug, file in published.items():
            assert server.ask(f"/{slug}/small") == (200, slug)
            assert server.ask(f"/{slug}/large") == (200, file.decode())
        found = server.operate("check")
        assert found["errors"] == [], found
    assert server.ask(f"/api/v1/projects/{project}", None, key, "DELETE")[0] == 204
    print(f"{len(published)} sites of large files outlived three kills")
    return server


def check_unreachable_store(store, server):
    """While the store hangs, pages in memory are served and the rest is refused in time."""
    for name in ["seen", *(f"unseen-{number}" for number in range(8))]:
        assert server.publish(name)[0] == 201
    server.end()
    server = Svc(store, server.data, "mine")
    server.shows("seen")
    os.kill(store.process.pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            publishing = pool.submit(server.publish, "new")
            views = [pool.submit(server.ask, f"/unseen-{number % 8}") for number in range(24)]
            while time.monotonic() < began + 5:
                status, text = server.ask("/seen")
                assert status == 200 and "of seen" in text
            for waiting in [publishing, *views]:
                assert_problem(waiting.result(), 503, "capacity_reached")
        took = time.monotonic() - began
        assert took < AWAY_SECONDS, took
        print(f"a publication and 24 views were refused within {took:.1f} s of a store that hangs")
    finally:
        os.kill(store.process.pid, signal.SIGCONT)
    deadline = time.monotonic() + 10
    while server.ask("/unseen-0")[0] != 200:
        assert time.monotonic() < deadline, "it has not come back"
        time.sleep(0.1)
    for number in range(8):
        server.shows(f"unseen-{number}")
    assert_problem(server.ask("/new"), 404, "not_found")
    assert server.publish("new")[0] == 201
    assert "not reached" in server.said()
    return server


def check_move_to_store(store, directory):
    """What was published into a directory is copied into a prefix, and served from there."""
    data = Path(directory, "moved")
    server = Svc(store, data, None)
    assert server.publish("moved")[0] == 201
    server.end()
    assert_start_refused("objects that pages need", store, data, "moved")
    content = data / "content"
    for path in content.rglob("*"):
        if path.is_file():
            store.put(f"moved/{path.relative_to(content)}", path.read_bytes())
    server = Svc(store, data, "moved")
    server.shows("moved")
    server.end()


def run_suite(store):
    """Runs the suite's tests of storage, each with a server whose content is there."""
    suite = [
        *["cargo", "test", "--locked", "--package", "svc-tests", "--test", "http"],
        *["--", "--exact", "stores::the_storage_part_of_the_suite_passes_on_another_store"],
    ]
    environment = {**os.environ, **store.environment, "SVC_TESTS_STORE_URL": f"s3://{BUCKET}/suite"}
    # Tests run in a folder of their own, where a path from here leads elsewhere.
    environment["SVC_BIN"] = str(BINARY)
    subprocess.run(suite, check=True, cwd=ROOT, env=environment)
    servers = {name.split("/")[1] for name in store.names("suite/")}
    print(f"the storage part of the suite passes there, with {len(servers)} servers")
    assert len(servers) > 60, servers


def main():
    store = Store()
    try:
        with tempfile.TemporaryDirectory(prefix="svc-s3-") as directory:
            CACHE.mkdir(mode=0o700, parents=True, exist_ok=True)
            data = Path(directory, "data")
            assert_start_refused("refuses these keys", store, data, "mine", AWS_SECRET_ACCESS_KEY="wrong")
            assert_start_refused("refuses these keys", store, data, "mine", AWS_ACCESS_KEY_ID="nobody")
            server = check_kills(store, data, "mine")
            server = check_site_kills(store, server)
            began, stray = time.monotonic(), f"mine/0f/{'a' * 62}"
            store.put(stray, b"stray")
            server = check_unreachable_store(store, server)
            assert_start_refused("belongs to another installation", store, Path(directory, "other"), "mine")
            check_move_to_store(store, directory)
            backup = Path(directory, "backup")
            assert server.operate("backup", backup)["complete"]
            # It was marked at the start that followed, and has a minute of grace.
            while stray in store.names("mine/"):
                assert time.monotonic() < began + 180, "the collector has not come by"
                time.sleep(1)
            # The files of a project that has ended go in their time, too.
            while (found := server.operate("check"))["leftovers"] and time.monotonic() < began + 180:
                time.sleep(1)
            assert (found["errors"], found["leftovers"]) == ([], []), found
            server.end()
            restored = [BINARY, "restore", backup, "--data", Path(directory, "restored")]
            subprocess.run(restored, check=True, capture_output=True)
            emptied = store.names("mine/installation")
            assert emptied == ["mine/installation"]
            store.s3.delete_object(Bucket=BUCKET, Key=emptied[0])
            assert_start_refused("not as this installation has left it", store, data, "mine")
            if "--suite" in sys.argv[1:]:
                run_suite(store)
    finally:
        store.process.kill()


if __name__ == "__main__":
    main()
