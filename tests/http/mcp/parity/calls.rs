//! The table of the walk: an operation, REST's status, the tool's arguments, and what later calls name by `$name`.
//!
//! The first call of an operation succeeds. Refusals stand here where a door has something of its own to do before it knows
//! that it refuses; what the operations refuse is tested once, in the tests of their domains.

/// Calls, each in a line, in their order.
pub(super) const CALLS: &str = r##"
deploy 201 {"content":"# Mine","type":"markdown","title":"Mine","slug":"mine"} mine=/id token=/delete_token
deploy 400 {"content":"x","slug":"No!"}
deploy 201 {"type":"site","files":{"index.html":{"text":"<title>Kit</title>"},"dot":{"base64":"AAE="}},"slug":"kit","options":{"fallback":"index.html"}}
deploy 400 {"type":"site","files":{"a":{"sha256":"0000000000000000000000000000000000000000000000000000000000000000"}}}
deploy 400 {"type":"site","files":{"a":{"text":"x"}},"content":"x"}

create_project 201 {"name":"House","description":"Mine"} project=/id
create_project 201 {"name":"Brief","ttl_seconds":3600} bare=/id
list_projects 200 {}
list_projects 200 {"workspace":"acme"}
get_project 200 {"project_id":"$project"}
get_project 404 {"project_id":"none"}
update_project 200 {"project_id":"$project","name":"Home"}
update_project 400 {"project_id":"$project"}
list_visitors 200 {"project_id":"$project","limit":1}
list_visitors 400 {"project_id":"$project","limit":0}
get_stats 200 {"project_id":"$project","step":"hour","from":"2026-11-20T10:00:00.000Z"}
get_stats 400 {"project_id":"$project","step":"week"}
list_log 200 {"project_id":"$project","limit":5,"kind":"call","status":404}
list_log 400 {"project_id":"$project","limit":0}
forget_visitor 204 {"project_id":"$project","user_id":"usr_7Jp2mQ0aZc91LxTvBnRk4s"}
list_domains 200 {"project_id":"$project"}
add_domain 201 {"project_id":"$project","name":"www.shop.com"}
add_domain 400 {"project_id":"$project","name":"localhost"}
verify_domain 200 {"project_id":"$project","name":"www.shop.com"}
list_domains 200 {"project_id":"$project"}
remove_domain 204 {"project_id":"$project","name":"www.shop.com"}
verify_domain 404 {"project_id":"$project","name":"www.shop.com"}

create_frontend 201 {"project_id":"$project","type":"html","content":"$page","requested_slug":"room","title":"Room"} room=/id sha=/content_sha256
create_frontend 400 {"project_id":"$project","type":"json","content":"{"}
claim_share 201 {"project_id":"$project","id":"$mine","delete_token":"$token"}
claim_share 404 {"project_id":"$project","id":"$mine","delete_token":"$token"}
claim_share 400 {"project_id":"$project","id":"$mine"}
list_frontends 200 {"project_id":"$project"}
get_frontend 200 {"project_id":"$project","slug":"room"}
get_frontend 200 {"project_id":"$project","id":"$room"}
get_frontend 404 {"project_id":"$project","id":"$nobody"}
get_content 200 {"project_id":"$project","slug":"room"}
get_content 200 {"project_id":"$project","slug":"room","known_content_sha256":"$sha"}
get_content 404 {"project_id":"$project","slug":"room","revision_id":"$nobody"}
republish_frontend 200 {"project_id":"$project","slug":"room","content":"<p>two","title":"Two"}

list_revisions 200 {"project_id":"$project","slug":"room"} active=/active_revision_id baseline=/revisions/1/revision_id
create_revision 200 {"project_id":"$project","slug":"room","base_revision_id":"$active","edits":[{"find":"two","replace":"three"}],"message":"three"} draft=/revision/revision_id
create_revision 200 {"project_id":"$project","slug":"room","base_revision_id":"$active","content":"<p>four"} other=/revision/revision_id
create_revision 200 {"project_id":"$project","slug":"room","base_revision_id":"$active","content":"<p>five"}
create_revision 200 {"project_id":"$project","slug":"room","base_revision_id":"$active","content":"<p>six"}
create_revision 409 {"project_id":"$project","slug":"room","base_revision_id":"none","content":"x"}
list_revisions 200 {"project_id":"$project","slug":"room"}
list_revisions 200 {"project_id":"$project","slug":"room","limit":1} cursor=/next_cursor
list_revisions 200 {"project_id":"$project","slug":"room","limit":200,"cursor":"$cursor"}
list_revisions 400 {"project_id":"$project","slug":"room","limit":201}
get_revision 200 {"project_id":"$project","slug":"room","revision_id":"$active"}
get_revision 404 {"project_id":"$project","slug":"room","revision_id":"$nobody"}
promote_revision 200 {"project_id":"$project","slug":"room","revision_id":"$draft","expected_active_revision_id":"$active"}
promote_revision 409 {"project_id":"$project","slug":"room","revision_id":"$other","expected_active_revision_id":"$active"}
rollback_revision 200 {"project_id":"$project","slug":"room","revision_id":"$baseline","expected_active_revision_id":"$draft"}
promote_revision 200 {"project_id":"$project","slug":"room","revision_id":"$other","expected_active_revision_id":"$baseline"}
list_releases 200 {"project_id":"$project","slug":"room"}
delete_revision 204 {"project_id":"$project","slug":"room","revision_id":"$draft"}
delete_revision 204 {"project_id":"$project","slug":"room","revision_id":"$draft"}
delete_revision 204 {"project_id":"$project","slug":"room","revision_id":"none"}
delete_revision 409 {"project_id":"$project","slug":"room","revision_id":"$other"}

create_frontend 201 {"project_id":"$project","type":"site","files":{"index.html":{"text":"<title>Wing</title>one"},"a.css":{"text":"a{}"}},"requested_slug":"wing"}
create_frontend 400 {"project_id":"$project","type":"site","files":{"../a":{"text":"x"}}}
create_frontend 400 {"project_id":"$project","type":"site","files":{"a":{"text":"x"}},"content":"x"}
create_frontend 400 {"project_id":"$project","type":"html","files":{"a":{"text":"x"}}}
create_frontend 409 {"project_id":"$project","type":"site","files":{"a":{"sha256":"0000000000000000000000000000000000000000000000000000000000000000"}}}
get_content 200 {"project_id":"$project","slug":"wing"} wing_sha=/content_sha256
get_content 200 {"project_id":"$project","slug":"wing","known_content_sha256":"$wing_sha"}
get_file 200 {"project_id":"$project","slug":"wing","path":"index.html"}
get_file 404 {"project_id":"$project","slug":"wing","path":"none"}
get_file 404 {"project_id":"$project","slug":"wing","path":"index.html","revision_id":"$nobody"}
get_file 400 {"project_id":"$project","slug":"room","path":"index.html"}
republish_frontend 200 {"project_id":"$project","slug":"wing","files":{"index.html":{"text":"<title>Wing</title>two"}},"options":{"fallback":"index.html"}}
republish_frontend 400 {"project_id":"$project","slug":"wing","content":"x"}
republish_frontend 400 {"project_id":"$project","slug":"wing","files":{}}
list_revisions 200 {"project_id":"$project","slug":"wing"} wing=/active_revision_id
create_revision 200 {"project_id":"$project","slug":"wing","base_revision_id":"$wing","changes":{"set":{"b.txt":{"text":"b"}},"edits":[{"path":"index.html","find":"two","replace":"three"}]}} wing_draft=/revision/revision_id
create_revision 400 {"project_id":"$project","slug":"wing","base_revision_id":"$wing","changes":{"delete":["none"]}}
create_revision 409 {"project_id":"$project","slug":"wing","base_revision_id":"$wing","files":{"index.html":{"sha256":"0000000000000000000000000000000000000000000000000000000000000000"}}}
promote_revision 200 {"project_id":"$project","slug":"wing","revision_id":"$wing_draft","expected_active_revision_id":"$wing"}
delete_revision 409 {"project_id":"$project","slug":"wing","revision_id":"$wing_draft"}

release_project 200 {"project_id":"$project","pages":[{"slug":"annexe","type":"markdown","content":"# Annexe","expected_active_revision_id":null}],"message":"more room"} annexe=/pages/0/revision_id
release_project 200 {"project_id":"$project","pages":[{"slug":"annexe","content":"# Annexe, again","expected_active_revision_id":"$annexe"}],"dry_run":true}
release_project 200 {"project_id":"$project","pages":[{"slug":"wing","changes":{"delete":["b.txt"]},"expected_active_revision_id":"$wing_draft"}],"dry_run":true}
release_project 200 {"project_id":"$project","pages":[{"slug":"shed","type":"site","files":{"index.html":{"text":"shed"}},"options":{"fallback":"index.html"},"expected_active_revision_id":null}]}
release_project 409 {"project_id":"$project","pages":[{"slug":"hut","type":"site","files":{"a":{"sha256":"0000000000000000000000000000000000000000000000000000000000000000"}},"expected_active_revision_id":null}]}
release_project 400 {"project_id":"$project","pages":[{"slug":"hut","type":"site","content":"x","expected_active_revision_id":null}]}
release_project 409 {"project_id":"$project","pages":[{"slug":"annexe","content":"# Annexe","expected_active_revision_id":null}]}
release_project 404 {"project_id":"$project","actions":[{"name":"one","sql":"SELECT 1 AS one"}]}
release_project 400 {"project_id":"$project"}
release_project 400 {"project_id":"$project","pages":[{"slug":"den","type":"json","content":"{","expected_active_revision_id":null}]}
release_project 200 {"project_id":"$project","remove_pages":[{"slug":"annexe","expected_active_revision_id":"$annexe"}]}

create_backend 201 {"project_id":"$project","ddl":"CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"}
update_backend 200 {"project_id":"$project","ddl":"ALTER TABLE notes ADD COLUMN at TEXT","note":"when"}
update_backend 200 {"project_id":"$project","realtime":true}
update_backend 200 {"project_id":"$project","agents":true}
update_backend 200 {"project_id":"$project","ddl":"CREATE TABLE more (a)","dry_run":true}
update_backend 400 {"project_id":"$project","realtime":true,"dry_run":true}
update_backend 400 {"project_id":"$project","ddl":"DROP TABLE notes"}
update_backend 400 {"project_id":"$project","ddl":"x","realtime":true}
update_backend 400 {"project_id":"$project"}
define_actions 200 {"project_id":"$project","actions":[{"name":"add","sql":"INSERT INTO notes (text) VALUES (:text)","note":"n"}]}
define_actions 200 {"project_id":"$project","actions":[{"name":"one","sql":"SELECT 1 AS one"}]}
define_actions 200 {"project_id":"$project","actions":[{"name":"two","sql":"SELECT 2 AS two"}],"dry_run":true}
define_actions 400 {"project_id":"$project","actions":[{"name":"Bad","sql":"SELECT 1"},{"name":"worse","sql":"DROP TABLE notes"}]}
define_actions 400 {"project_id":"$project","actions":"add"}
define_actions 400 {"project_id":"$project","actions":null}
define_actions 200 {"project_id":"$project","actions":[{"name":"pick","sql":"SELECT :n AS n, :b AS b","defaults":{"n":1.50,"b":{"base64":"AAE="}},"expected_version":0},{"name":"add","sql":"INSERT INTO notes (text) VALUES (:text)"}]}
define_actions 409 {"project_id":"$project","actions":[{"name":"pick","sql":"SELECT :n AS n","expected_version":2}]}
define_actions 200 {"project_id":"$project","actions":[{"name":"pick","sql":"SELECT :n AS n"}],"replace":true,"dry_run":true}
define_actions 400 {"project_id":"$project","actions":[{"name":"pick","sql":"SELECT :n AS n","defaults":{"m":1}}]}
define_actions 200 {"project_id":"$project","actions":[{"name":"pick","sql":"SELECT :n AS n"},{"name":"add","sql":"INSERT INTO notes (text) VALUES (:text)"},{"name":"one","sql":"SELECT 1 AS one"}],"replace":true}
list_action_versions 200 {"project_id":"$project","name":"pick"}
list_action_versions 200 {"project_id":"$project","name":"pick","limit":1} older=/next_cursor
list_action_versions 200 {"project_id":"$project","name":"pick","limit":200,"cursor":"$older"}
list_action_versions 400 {"project_id":"$project","name":"pick","limit":201}
list_action_versions 404 {"project_id":"$project","name":"unknown"}
rollback_action 200 {"project_id":"$project","name":"pick","version":1,"expected_version":2}
rollback_action 404 {"project_id":"$project","name":"pick","version":9}
rollback_action 409 {"project_id":"$project","name":"pick","version":1,"expected_version":2}
rollback_action 400 {"project_id":"$project","name":"pick"}
call_actions 200 {"project_id":"$project","ops":[{"action":"pick"},{"action":"pick","params":{"n":7}}]}
delete_action 204 {"project_id":"$project","name":"pick","expected_version":3}
delete_action 204 {"project_id":"$project","name":"pick","expected_version":3}
delete_action 409 {"project_id":"$project","name":"one","expected_version":3}
query_backend 200 {"project_id":"$project","sql":"SELECT count(*) AS n FROM notes WHERE text LIKE :like","params":{"like":"a%"},"read_only":true}
query_backend 200 {"project_id":"$project","sql":"INSERT INTO notes (text) VALUES ('b')"}
query_backend 403 {"project_id":"$project","sql":"DELETE FROM notes","read_only":true}
query_backend 400 {"project_id":"$project","sql":"DROP TABLE notes"}
query_backend 400 {"project_id":"$project","sql":"SELECT :a","params":{"b":1}}
query_backend 400 {"project_id":"$project"}
call_actions 200 {"project_id":"$project","ops":[{"action":"add","params":{"text":"a"}},{"action":"one"}]}
call_actions 409 {"project_id":"$project","ops":[{"action":"add","params":{"text":"a"}},{"action":"add","params":{"text":null}}]}
call_actions 400 {"project_id":"$project","ops":[{"action":"add","params":{"text":{"from":[0,"id"]}}}]}
get_backend 200 {"project_id":"$project"}
export_backend 200 {"project_id":"$project"}
list_backend_history 200 {"project_id":"$project"}
list_backend_history 200 {"project_id":"$project","limit":1,"before":"2026-11-20T12:00:00.000Z"}
list_backend_history 400 {"project_id":"$project","limit":1001}
restore_backend 200 {"project_id":"$project","at":"2026-11-20T12:00:00.000Z"}
list_files 200 {"project_id":"$project"}
list_files 200 {"project_id":"$project","limit":1}
list_files 400 {"project_id":"$project","limit":0}
list_files 400 {"project_id":"$project","cursor":"x"}
delete_file_of_visitor 204 {"project_id":"$project","file_id":"file_00000000000000000000000000"}
forget_visitor 204 {"project_id":"$project","user_id":"usr_7Jp2mQ0aZc91LxTvBnRk4s","files":true}
list_rooms 200 {"project_id":"$project"}
send_to_room 202 {"project_id":"$project","room":"lobby","type":"notice","data":[1,null]}
send_to_room 202 {"project_id":"$project","room":"lobby","type":"notice","data":null}
send_to_room 400 {"project_id":"$project","room":".lobby","type":"notice"}
send_to_room 413 {"project_id":"$project","room":"lobby","type":"notice","data":"$long"}
update_backend 200 {"project_id":"$project","realtime":false}
list_rooms 404 {"project_id":"$project"}
send_to_room 404 {"project_id":"$project","room":"lobby","type":"notice"}
get_backend 200 {"project_id":"$project"}

add_price 201 {"project_id":"$project","key":"pot","product_name":"Tea","label":"Pot","amount":300,"currency":"EUR","recurring":true,"description":"Leaves"} price=/id
list_catalog 200 {"project_id":"$project"}
deactivate_price 200 {"project_id":"$project","price_id":"$price"}
deactivate_price 200 {"project_id":"$project","price_id":"$price"}
deactivate_price 404 {"project_id":"$project","price_id":"price_none"}
list_catalog 200 {"project_id":"$project"}
list_sessions 200 {"project_id":"$project","limit":1}
list_sessions 400 {"project_id":"$project","limit":1001}

create_workspace 201 {"display_name":"Tools","slug":"tools"}
list_workspaces 200 {}
get_workspace 200 {"workspace":"tools"}
update_workspace 200 {"workspace":"tools","display_name":"Workshop"}
list_members 200 {"workspace":"tools"}
add_member 201 {"workspace":"tools","user_id":"$bob","role":"viewer"}
set_role 200 {"workspace":"tools","user_id":"$bob","role":"admin"}
set_role 400 {"workspace":"tools","user_id":"$bob","role":"boss"}
remove_member 204 {"workspace":"tools","user_id":"$bob"}
remove_member 400 {"workspace":"tools","user_id":"23456789"}
delete_workspace 204 {"workspace":"tools"}

delete_backend 204 {"project_id":"$project"}
delete_backend 204 {"project_id":"$project"}
delete_frontend 204 {"project_id":"$project","slug":"room"}
delete_frontend 204 {"project_id":"$project","slug":"room"}
delete_project 204 {"project_id":"$project"}
delete_project 204 {"project_id":"$project"}
delete_project 204 {"project_id":"none"}
get_project 404 {"project_id":"$project"}
"##;
