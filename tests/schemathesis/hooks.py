"""What JSON Schema cannot say: the findings that follow from it are let go here, one by one, each with its reason."""

import json
import os

import schemathesis

# What the server has at the start: a project; in it a frontend with a draft, and one that nobody publishes anew, so that
# drafts can be made from what is live there.
PROJECT, FRONTEND, STILL = os.environ["SVC_PROJECT"], "notes", "journal"
LIVE, DRAFT, STILL_LIVE = os.environ["SVC_LIVE"], os.environ["SVC_DRAFT"], os.environ["SVC_STILL_LIVE"]

# Refusals of requests that the schema allows: by code, with a part of the detail where the code says too little.
BEYOND_SCHEMAS = [
    # Whether a text is a script, a statement or a document of its type is known to who reads it.
    ("ddl_refused", ""),
    ("statement_refused", ""),
    ("statement_failed", ""),
    ("render_failed", ""),
    ("query_timeout", ""),
    # A schema counts characters of a text, never bytes of a text or of a body.
    ("payload_too_large", "request body"),
    ("invalid_request", " bytes"),
    # A frontend keeps its type, an action asks for its params, a database has so much room: the server holds all of these.
    ("type_mismatch", ""),
    ("params_mismatch", ""),
    ("reserved_param", ""),
    ("database_full", ""),
    # A default is one of a bind that the statement has; an interval is one of a price that is paid again.
    ("invalid_request", "the statement has no bind"),
    ("invalid_request", "`interval` says how often"),
    # Rules for files are of a statement that takes one; a time comes before another.
    ("invalid_request", "`files` is for an action with `:svc_file`"),
    ("invalid_request", "`from` must be before `to`"),
    ("invalid_request", " points; "),
    # A size is one of six, which bounds say less exactly.
    ("invalid_request", "`size` is one of 64"),
    # Names that a batch has once each: a schema tells equal members apart, not equal names.
    ("invalid_request", "has an action of this name already"),
    ("invalid_request", "The release has this `"),
    # A release counts the parts of all its lists together.
    ("invalid_request", "parts; "),
    # White space alone is no page, whatever its kind.
    ("invalid_request", "`content` is empty"),
    # A domain is a name that somebody may have, and leads to a host of its project.
    ("invalid_request", "In `name`: `"),
    ("invalid_request", "`redirect_to` "),
    # A project's home is one of its frontends.
    ("invalid_request", "the project has no frontend"),
    # A page has a source, a site has files, and a frontend is one of both for good: so has each request's body.
    ("invalid_request", "is a page of one source"),
    ("invalid_request", "a field that this `type` does not have"),
    ("invalid_request", "of a page, or `files` or `changes` of a site"),
    ("invalid_request", "Send `files` or `changes`, not both"),
    # A file is one of three things, its paths have rules among each other, and so do the texts of its own rules.
    ("invalid_request", "which may have its `size` beside it"),
    ("invalid_request", "`base64` is not valid"),
    ("digest_mismatch", ""),
    ("invalid_request", "is named by its SHA-256"),
    ("invalid_request", "and `files`, `changes` and `options` of a site"),
    ("invalid_request", "is changed twice"),
    ("invalid_request", "which `fallback` names"),
    ("invalid_request", "of `immutable`"),
    ("path_refused", ""),
    ("rules_refused", ""),
    # Only what was live before can be put back.
    ("invalid_request", "never live"),
    # Which sign-in providers there are is the operator's.
    ("invalid_request", "there is no sign-in provider"),
    # A cursor comes from the page before.
    ("invalid_request", "`cursor`"),
    # Where time stands changes.
    ("invalid_request", "is in the future"),
    # An op takes from one before it; an edit finds a text as often as it says: one member depends on another's value.
    ("invalid_request", "which does not come before it"),
    # A query parameter that forbids a body's member.
    ("invalid_request", "`dry_run` is for migrations and actions"),
]


def json_of(response):
    """Returns the object that an answer is, or an empty one."""
    try:
        found = json.loads(response.content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def is_beyond_schemas(response):
    """Whether a request that the schema allows was refused for what a schema cannot say."""
    problem = json_of(response)
    code, detail = problem.get("code"), problem.get("detail", "")
    return any(code == known and part in detail for known, part in BEYOND_SCHEMAS)


def is_refused_within(operation, response):
    """Whether an answer of status 200 refuses: JSON-RPC has errors of its own, for messages that HTTP took."""
    return operation.path == "/mcp" and "error" in json_of(response)


@schemathesis.hook
def before_load_schema(context, raw_schema):
    """Has the examples be of this server, instead of the one that they are from."""
    for item in raw_schema["paths"].values():
        for operation in item.values():
            name = operation["operationId"]
            here = {"id": PROJECT, "target": FRONTEND, "slug": "minutes" if name == "unlock" else FRONTEND}
            if name == "create_revision":
                here["target"] = STILL
                example_of(operation, "edits")["base_revision_id"] = STILL_LIVE
            if name.startswith("delete_"):
                continue
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path" and parameter["name"] in here:
                    parameter["example"] = here[parameter["name"]]
    promote = raw_schema["paths"]["/api/v1/projects/{id}/frontends/{target}/promote"]["post"]
    example = dict(example_of(promote, "promotion"))
    text = json.dumps(raw_schema)
    for name, here in [("revision_id", DRAFT), ("expected_active_revision_id", LIVE)]:
        text = text.replace(example[name], here)
    raw_schema.update(json.loads(text))


def example_of(operation, name):
    """Returns an example of an operation's body."""
    return operation["requestBody"]["content"]["application/json"]["examples"][name]["value"]


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """Looks for frontends where they are: in another project they are never found."""
    if path_parameters and path_parameters.get("target") in (FRONTEND, STILL):
        return {**path_parameters, "id": PROJECT}
    return path_parameters


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Keeps a finding, unless no schema could have foreseen the refusal."""
    kind = type(failure).__name__
    if kind == "RejectedPositiveData":
        return not is_beyond_schemas(response)
    if kind == "AcceptedNegativeData":
        return not is_refused_within(context.operation, response)
    return True


@schemathesis.deserializer("application/vnd.sqlite3")
def database(context, response):
    """Reads a database as the string of bytes that it is described as."""
    return response.content.decode("latin-1")
