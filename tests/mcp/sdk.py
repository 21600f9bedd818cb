"""The official Python client, as it comes: it lists the tools and does the job that calls every action."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

JOB = json.loads(Path(__file__).with_name("job.json").read_text())


def field(result, name):
    """A member of a result, however this version of the SDK spells it."""
    snake = re.sub(r"([A-Z])", lambda m: "_" + m.group(1).lower(), name)
    return getattr(result, snake) if hasattr(result, snake) else getattr(result, name)


async def main(endpoint, mode):
    headers = {"Authorization": f"Bearer {os.environ['SVC_CREDENTIAL']}"}
    http = create_mcp_http_client(headers=headers)
    async with Client(streamable_http_client(endpoint, http_client=http), mode=mode) as client:
        tools = (await client.list_tools()).tools
        listed = set()
        for tool in tools:
            action = field(tool, "inputSchema")["properties"].get("action", {"enum": [""]})
            listed |= {(tool.name, name) for name in action["enum"]}
        kept, called = {}, set()
        for step in JOB:
            text = re.sub(r"\$(\w+)", lambda m: kept.get(m.group(1), "nobody"), json.dumps(step["arguments"]))
            result = await client.call_tool(step["tool"], json.loads(text))
            answer = field(result, "structuredContent")
            refused = bool(field(result, "isError"))
            # What only users do refuses a key, whatever it is about.
            expected = "forbidden" if step.get("users") else step.get("refused")
            assert refused == (expected is not None), (step, answer)
            assert json.loads(result.content[0].text) == answer
            if refused:
                assert answer["code"] == expected, answer
            # DNS proves nothing here.
            if not refused or step.get("users") or step.get("counts"):
                called.add((step["tool"], step["arguments"].get("action", "")))
            if refused:
                continue
            for name, value in step.get("expect", {}).items():
                assert answer[name] == value, (step, answer)
            for name, path in step.get("keep", {}).items():
                value = answer
                for part in path.split("."):
                    value = value[int(part)] if isinstance(value, list) else value[part]
                kept[name] = value
        assert called == listed, called ^ listed
        print(f"done: {len(JOB)} calls")


asyncio.run(main(sys.argv[1], sys.argv[2]))
