;; A gate that does what the first byte of its SQL says: what a broken or a hostile one could do.
;; HOST and MISDEEDS stand for the files of those names.
(component
  (import "svc:gate/types@1.0.0" (instance $types
    (type $p (enum "action" "query" "schema" "migration"))
    (export "purpose" (type (eq $p)))
    (type $k (enum "read" "write" "migration"))
    (export "kind" (type $kind (eq $k)))
    (type $l (record (field "line" u32) (field "column" u32) (field "offset" u32)))
    (export "place" (type $place (eq $l)))
    (type $t (record (field "name" string) (field "times" u32)))
    (export "table" (type $table (eq $t)))
    (type $s (record (field "kind" $kind) (field "binds" (list string)) (field "returns-rows" bool)
      (field "tables" (list $table)) (field "view" (option string)) (field "parts" u32) (field "start" u32) (field "end" u32)))
    (export "statement" (type (eq $s)))
    (type $r (record (field "reason" string) (field "statement" u32) (field "place" $place)))
    (export "refusal" (type (eq $r)))))
  (alias export $types "purpose" (type $purpose))
  (alias export $types "statement" (type $statement))
  (alias export $types "refusal" (type $refusal))
HOST
  (core module $guest
MISDEEDS
    ;; This many statements.
    (func $allow (param $list i32) (param $count i32) (result i32)
      (i32.store8 (i32.const 1024) (i32.const 0))
      (i32.store (i32.const 1028) (local.get $list))
      (i32.store (i32.const 1032) (local.get $count))
      (i32.const 1024))

    ;; A refusal with a reason of these bytes.
    (func $refuse (param $reason i32) (param $bytes i32) (result i32)
      (i32.store8 (i32.const 1024) (i32.const 1))
      (i32.store (i32.const 1028) (local.get $reason))
      (i32.store (i32.const 1032) (local.get $bytes))
      (i32.const 1024))

    (func (export "check") (param $sql i32) (param $bytes i32) (param $purpose i32) (result i32)
      (local $letter i32) (local $at i32) (local $list i32) (local $next i32)
      (local.set $letter (i32.load8_u (local.get $sql)))
      (call $misbehave (local.get $letter))
      ;; p: statements outside its memory
      (if (call $is (local.get $letter) (i32.const 112)) (then
        (return (call $allow (i32.const 0x7ffffff0) (i32.const 1)))))
      ;; u: a reason that is no text
      (if (call $is (local.get $letter) (i32.const 117)) (then
        (i32.store (i32.const 512) (i32.const 0xfffefdfc))
        (return (call $refuse (i32.const 512) (i32.const 4)))))
      ;; d: neither statements nor a refusal
      (if (call $is (local.get $letter) (i32.const 100)) (then
        (drop (call $allow (i32.const 0) (i32.const 0)))
        (i32.store8 (i32.const 1024) (i32.const 7))
        (return (i32.const 1024))))
      ;; D: a statement of a kind that there is not
      (if (call $is (local.get $letter) (i32.const 68)) (then
        (local.set $list (call $realloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 64)))
        (i32.store8 (local.get $list) (i32.const 9))
        (return (call $allow (local.get $list) (i32.const 1)))))
      ;; n: more statements than its memory holds
      (if (call $is (local.get $letter) (i32.const 110)) (then
        (return (call $allow (i32.const 0) (i32.const 0x03ffffff)))))
      ;; x: a statement with a thousand binds that share one megabyte of text
      (if (call $is (local.get $letter) (i32.const 120)) (then
        (local.set $at (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0x100000)))
        (local.set $list (call $realloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 8064)))
        (local.set $next (i32.add (local.get $list) (i32.const 64)))
        (i32.store offset=4 (local.get $list) (local.get $next))
        (i32.store offset=8 (local.get $list) (i32.const 1000))
        (loop $again
          (i32.store (local.get $next) (local.get $at))
          (i32.store offset=4 (local.get $next) (i32.const 0x100000))
          (local.set $next (i32.add (local.get $next) (i32.const 8)))
          (br_if $again (i32.lt_u (local.get $next) (i32.add (local.get $list) (i32.const 8064)))))
        (return (call $allow (local.get $list) (i32.const 1)))))
      ;; g: a statement where there can be none
      (if (call $is (local.get $letter) (i32.const 103)) (then
        (local.set $list (call $realloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 64)))
        (i32.store offset=40 (local.get $list) (i32.const 9000))
        (i32.store offset=44 (local.get $list) (i32.const 9001))
        (return (call $allow (local.get $list) (i32.const 1)))))
      ;; o: a reason of 16 MB
      (if (call $is (local.get $letter) (i32.const 111)) (then
        (local.set $at (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16000000)))
        (return (call $refuse (local.get $at) (i32.const 16000000)))))
      ;; O: a reason of 100 MB
      (if (call $is (local.get $letter) (i32.const 79)) (then
        (local.set $at (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 100000000)))
        (return (call $refuse (local.get $at) (i32.const 100000000)))))
      (call $allow (i32.const 0) (i32.const 0))))
  (core instance $i (instantiate $guest (with "host" (instance $host))))
  (func $check (param "sql" string) (param "purpose" $purpose)
    (result (result (list $statement) (error $refusal)))
    (canon lift (core func $i "check") (memory $memory) (realloc (core func $i "realloc"))))
  (instance $judge (export "check" (func $check)))
  (export "svc:gate/judge@1.0.0" (instance $judge)))
