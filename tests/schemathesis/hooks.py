"""What JSON Schema cannot say: the findings that follow from it are let go here, one by one, each with its reason."""

import json

import schemathesis

# Refusals that no schema foresees: whether a text is a script, a statement or a document of its type is known to who reads it.
BY_READING = {"ddl_refused", "statement_refused", "statement_failed", "render_failed", "query_timeout"}
# Refusals for what the server holds by now.
BY_STATE = {"type_mismatch", "params_mismatch", "database_full"}


def problem_of(response):
    """Returns the problem of an answer, or nothing."""
    try:
        problem = json.loads(response.content)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def is_too_long_in_bytes(case, response, problem):
    """Whether a text was refused for its bytes, which a schema cannot count."""
    return " bytes" in problem.get("detail", "") and len(response.request.body or b"") > 1000


def is_beyond_schemas(case, response):
    """Whether a request that the schema allows was refused for what a schema cannot say."""
    problem = problem_of(response)
    code, detail = problem.get("code"), problem.get("detail", "")
    if code in BY_READING | BY_STATE:
        return True
    if code == "payload_too_large" or is_too_long_in_bytes(case, response, problem):
        return True
    return False


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Keeps a finding, unless it is a refusal of what no schema can say."""
    if type(failure).__name__ != "RejectedPositiveData":
        return True
    return not is_beyond_schemas(case, response)
