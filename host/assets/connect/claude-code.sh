claude mcp add --transport http svc http://localhost:8080/mcp
