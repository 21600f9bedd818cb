claude mcp add --transport http svc http://localhost:8080/mcp --header "Authorization: Bearer $SVC_CREDENTIAL"
