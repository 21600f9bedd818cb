;; A renderer that does what the first byte of its source says: what a broken or a hostile one could do.
;; HOST and MISDEEDS stand for the files of those names.
(component
  (import "svc:render/types@2.0.0" (instance $types
    (type $l (record (field "line" u32) (field "column" u32)))
    (export "place" (type $place (eq $l)))
    (type $r (record (field "src" string) (field "slug" string)))
    (export "runtime-script" (type $runtime-script (eq $r)))
    (type $o (record (field "raw" (option string)) (field "expires-at" (option string)) (field "report" (option string))))
    (export "foot" (type $foot (eq $o)))
    (type $s (record (field "content-type" string) (field "title" (option string)) (field "name" (option string))
      (field "text" string) (field "runtime" (option $runtime-script)) (field "page-bytes" u32) (field "foot" (option $foot))
      (field "is-private" bool)))
    (export "source" (type (eq $s)))
    (type $d (record (field "text" string) (field "start" u32) (field "end" u32) (field "line" u32)))
    (export "diagram" (type $diagram (eq $d)))
    (type $p (record (field "html" string) (field "diagrams" (list $diagram)) (field "title" (option string))))
    (export "page" (type (eq $p)))
    (type $m (record (field "message" string) (field "place" (option $place))))
    (export "malformed" (type $malformed (eq $m)))
    (type $e (variant (case "malformed" $malformed) (case "too-large") (case "unsupported")))
    (export "render-error" (type (eq $e)))
    (type $f (variant (case "malformed" $malformed) (case "unsupported") (case "too-large" u32) (case "too-complex")))
    (export "draw-error" (type (eq $f)))))
  (alias export $types "source" (type $source))
  (alias export $types "page" (type $page))
  (alias export $types "render-error" (type $render-error))
  (alias export $types "draw-error" (type $draw-error))
HOST
  (core module $guest
MISDEEDS
    (data (i32.const 16) "<!doctype html><title>ok</title>")

    ;; A page of these bytes with these diagrams.
    (func $answer (param $html i32) (param $bytes i32) (param $diagrams i32) (param $count i32) (result i32)
      (i32.store8 (i32.const 1024) (i32.const 0))
      (i32.store (i32.const 1028) (local.get $html))
      (i32.store (i32.const 1032) (local.get $bytes))
      (i32.store (i32.const 1036) (local.get $diagrams))
      (i32.store (i32.const 1040) (local.get $count))
      (i32.store8 (i32.const 1044) (i32.const 0))
      (i32.const 1024))

    (func (export "render") (param $source i32) (result i32)
      (local $text i32) (local $offset i32) (local $letter i32) (local $at i32) (local $list i32)
      (local.set $text (i32.load offset=32 (local.get $source)))
      (local.set $letter (i32.load8_u (local.get $text)))
      (call $misbehave (local.get $letter))
      ;; p: a page outside its memory
      (if (call $is (local.get $letter) (i32.const 112)) (then
        (return (call $answer (i32.const 0x7ffffff0) (i32.const 100) (i32.const 0) (i32.const 0)))))
      ;; u: a page that is no text
      (if (call $is (local.get $letter) (i32.const 117)) (then
        (i32.store (i32.const 512) (i32.const 0xfffefdfc))
        (return (call $answer (i32.const 512) (i32.const 4) (i32.const 0) (i32.const 0)))))
      ;; d: neither a page nor an error
      (if (call $is (local.get $letter) (i32.const 100)) (then
        (drop (call $answer (i32.const 16) (i32.const 32) (i32.const 0) (i32.const 0)))
        (i32.store8 (i32.const 1024) (i32.const 7))
        (return (i32.const 1024))))
      ;; D: an error that there is not
      (if (call $is (local.get $letter) (i32.const 68)) (then
        (drop (call $answer (i32.const 9) (i32.const 0) (i32.const 0) (i32.const 0)))
        (i32.store8 (i32.const 1024) (i32.const 1))
        (return (i32.const 1024))))
      ;; n: more diagrams than its memory holds
      (if (call $is (local.get $letter) (i32.const 110)) (then
        (return (call $answer (i32.const 16) (i32.const 32) (i32.const 0) (i32.const 0x0fffffff)))))
      ;; x: a thousand diagrams that share one megabyte of text
      (if (call $is (local.get $letter) (i32.const 120)) (then
        (local.set $at (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0x100000)))
        (local.set $list (call $realloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 20000)))
        (loop $again
          (i32.store (i32.add (local.get $list) (local.get $offset)) (local.get $at))
          (i32.store offset=4 (i32.add (local.get $list) (local.get $offset)) (i32.const 0x100000))
          (local.set $offset (i32.add (local.get $offset) (i32.const 20)))
          (br_if $again (i32.lt_u (local.get $offset) (i32.const 20000))))
        (return (call $answer (i32.const 16) (i32.const 32) (local.get $list) (i32.const 1000)))))
      ;; g: a diagram where there can be none
      (if (call $is (local.get $letter) (i32.const 103)) (then
        (local.set $list (call $realloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 20)))
        (i32.store offset=8 (local.get $list) (i32.const 30))
        (i32.store offset=12 (local.get $list) (i32.const 3000))
        (return (call $answer (i32.const 16) (i32.const 32) (local.get $list) (i32.const 1)))))
      ;; o: a page of 100 MB
      (if (call $is (local.get $letter) (i32.const 111)) (then
        (local.set $at (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 100000000)))
        (return (call $answer (local.get $at) (i32.const 100000000) (i32.const 0) (i32.const 0)))))
      ;; f: a page with a diagram, whose drawing does what the second byte of the source says
      (if (call $is (local.get $letter) (i32.const 102)) (then
        (local.set $list (call $realloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 20)))
        (i32.store (local.get $list) (i32.add (local.get $text) (i32.const 1)))
        (i32.store offset=4 (local.get $list) (i32.const 1))
        (i32.store offset=8 (local.get $list) (i32.const 32))
        (i32.store offset=12 (local.get $list) (i32.const 32))
        (return (call $answer (i32.const 16) (i32.const 32) (local.get $list) (i32.const 1)))))
      (call $answer (i32.const 16) (i32.const 32) (i32.const 0) (i32.const 0)))

    (func (export "draw") (param $text i32) (param $bytes i32) (param $number i32) (result i32)
      (call $misbehave (i32.load8_u (local.get $text)))
      (i32.store8 (i32.const 1024) (i32.const 0))
      (i32.store (i32.const 1028) (i32.const 16))
      (i32.store (i32.const 1032) (i32.const 0))
      ;; o: a drawing of 100 MB
      (if (call $is (i32.load8_u (local.get $text)) (i32.const 111)) (then
        (i32.store (i32.const 1028)
          (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 100000000)))
        (i32.store (i32.const 1032) (i32.const 100000000))))
      (i32.const 1024)))
  (core instance $i (instantiate $guest (with "host" (instance $host))))
  (func $render (param "source" $source) (result (result $page (error $render-error)))
    (canon lift (core func $i "render") (memory $memory) (realloc (core func $i "realloc"))))
  (func $draw (param "text" string) (param "number" u32) (result (result string (error $draw-error)))
    (canon lift (core func $i "draw") (memory $memory) (realloc (core func $i "realloc"))))
  (instance $renderer (export "render" (func $render)) (export "draw" (func $draw)))
  (export "svc:render/renderer@2.0.0" (instance $renderer)))
