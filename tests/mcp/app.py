"""The official Python client at an app's own tools: it reads all pages of the list, and adds a book."""

import asyncio
import sys

from mcp import Client
from mcp.client.streamable_http import streamable_http_client


def field(result, snake, camel):
    """A member of a result, however this version of the SDK spells it."""
    return getattr(result, snake) if hasattr(result, snake) else getattr(result, camel)


async def main(endpoint, mode):
    async with Client(streamable_http_client(endpoint), mode=mode) as client:
        names, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor = field(page, "next_cursor", "nextCursor")
            if cursor is None:
                break
        assert len(names) == len(set(names)) == 202, len(names)
        book = {"title": f"A book from Python, {mode}", "by": "Python"}
        added = await client.call_tool("add_book", book)
        assert field(added, "structured_content", "structuredContent")["rows_affected"] == 1
        refused = await client.call_tool("add_book", book)
        assert field(refused, "is_error", "isError")
        print("done")


asyncio.run(main(sys.argv[1], sys.argv[2]))
