curl http://localhost:8080/api/v1/deploy \
  --json '{"type": "markdown", "name": "hello", "content": "# Hello\n\nThis is *my* page."}'
