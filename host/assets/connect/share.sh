curl http://localhost:8080/api/v1/deploy \
  -d '{"type": "markdown", "name": "hello", "content": "# Hello\n\nThis is *my* page."}'
