-- Sign the book
INSERT INTO entries (name, message) VALUES (trim(:name), trim(:message))
