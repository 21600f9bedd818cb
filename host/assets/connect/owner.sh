S=http://localhost:8080; API=$S/api/v1/projects; A="Authorization: Bearer $SVC_CREDENTIAL"
# Make a project, and publish a page in it: it answers on the project's origin.
P=$(curl -fsS $API -H "$A" -d '{"name": "Web shop"}' | cut -d'"' -f4); F=$API/$P/frontends
curl -fsS $F -H "$A" -d '{"type": "markdown", "requested_slug": "shop", "content": "# Shop"}'
