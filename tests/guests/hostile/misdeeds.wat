    ;; What a guest of any world can do wrong. The first byte of its input says what.
    (import "host" "memory" (memory 1))
    (import "host" "write" (func $write (param i32 i32 i32 i32)))
    (import "host" "zeroes" (func $zeroes (param i32 i64 i32)))
    (import "host" "stderr" (func $stderr (result i32)))
    (import "host" "exit" (func $exit (param i32)))
    (import "host" "now" (func $now (result i64)))
    (import "host" "wait" (func $wait (param i64) (result i32)))
    (import "host" "date" (func $date (param i32)))
    (table 1 funcref)
    (elem declare func $misbehave)
    (type $nothing (func))
    (global $calls (mut i32) (i32.const 0))
    (global $free (mut i32) (i32.const 4096))

    ;; Room for the host to write into, and for what is answered: it is never given back.
    (func $realloc (export "realloc") (param $old i32) (param $had i32) (param $align i32) (param $size i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.const 15)) (i32.const -16)))
      (global.set $free (i32.add (local.get $at) (local.get $size)))
      (block $fits
        (br_if $fits (i32.le_u (global.get $free) (i32.mul (memory.size) (i32.const 65536))))
        (drop (memory.grow (i32.add (i32.const 1) (i32.div_u (local.get $size) (i32.const 65536))))))
      (local.get $at))

    (func $deeper (param $at i32) (result i32)
      (i32.add (call $deeper (i32.add (local.get $at) (i32.const 1))) (call $deeper (local.get $at))))

    (func $is (param $letter i32) (param $other i32) (result i32)
      (i32.eq (local.get $letter) (local.get $other)))

    (func $misbehave (param $letter i32)
      (local $stream i32) (local $at i32)
      ;; l: work without an end
      (if (call $is (local.get $letter) (i32.const 108)) (then (loop $again (br $again))))
      ;; s: depth without an end
      (if (call $is (local.get $letter) (i32.const 115)) (then (drop (call $deeper (i32.const 0)))))
      ;; m: memory without an end, a megabyte at a time, each written to
      (if (call $is (local.get $letter) (i32.const 109)) (then
        (loop $again
          (memory.fill
            (i32.mul (memory.grow (i32.const 16)) (i32.const 65536)) (i32.const 1) (i32.const 0x100000))
          (br $again))))
      ;; M: more memory at once than there is
      (if (call $is (local.get $letter) (i32.const 77)) (then (drop (memory.grow (i32.const 65535)))))
      ;; t: a trap
      (if (call $is (local.get $letter) (i32.const 116)) (then (unreachable)))
      ;; z: a division by zero
      (if (call $is (local.get $letter) (i32.const 122)) (then
        (drop (i32.div_u (local.get $letter) (global.get $calls)))))
      ;; b: a read just below its memory, where a stack of its own that is full would reach
      (if (call $is (local.get $letter) (i32.const 98)) (then (drop (i32.load (i32.const -4)))))
      ;; B: a read far beyond its memory
      (if (call $is (local.get $letter) (i32.const 66)) (then (drop (i32.load (i32.const 0x40000000)))))
      ;; i: a call of no function
      (if (call $is (local.get $letter) (i32.const 105)) (then (call_indirect (type $nothing) (i32.const 0))))
      ;; e: an exit, as of a process
      (if (call $is (local.get $letter) (i32.const 101)) (then (call $exit (i32.const 0))))
      ;; h: handles of the host's without an end
      (if (call $is (local.get $letter) (i32.const 104)) (then
        (loop $again (drop (call $stderr)) (br $again))))
      ;; w: words on its standard error without an end
      (if (call $is (local.get $letter) (i32.const 119)) (then
        (local.set $stream (call $stderr))
        (loop $again
          (call $write (local.get $stream) (i32.const 0) (i32.const 4096) (i32.const 2048))
          (br $again))))
      ;; W: more zeroes at once on its standard error than any memory holds
      (if (call $is (local.get $letter) (i32.const 87)) (then
        (call $zeroes (call $stderr) (i64.const 0x7fffffffffff) (i32.const 2048))))
      ;; q: a wait
      (if (call $is (local.get $letter) (i32.const 113)) (then (drop (call $wait (i64.const 1000000000)))))
      ;; c: a look at the clocks; it traps if one has moved
      (if (call $is (local.get $letter) (i32.const 99)) (then
        (call $date (i32.const 2048))
        (if (i32.eqz (i64.eqz (i64.or (call $now) (i64.load (i32.const 2048))))) (then (unreachable)))
        (if (i32.load (i32.const 2056)) (then (unreachable)))))
      ;; k: something kept for the next call; it traps if it finds something kept
      (if (call $is (local.get $letter) (i32.const 107)) (then
        (if (i32.or (global.get $calls) (i32.load (i32.const 3072))) (then (unreachable)))
        (if (i32.ne (memory.size) (i32.const 1)) (then (unreachable)))
        (drop (memory.grow (i32.const 127)))
        (loop $next
          (if (i32.load offset=0x10000 (local.get $at)) (then (unreachable)))
          (i32.store offset=0x10000 (local.get $at) (i32.const 1))
          (local.set $at (i32.add (local.get $at) (i32.const 0x1000)))
          (br_if $next (i32.lt_u (local.get $at) (i32.const 0x7f0000))))
        (if (i32.ne (table.size) (i32.const 1)) (then (unreachable)))
        (if (i32.eqz (ref.is_null (table.get (i32.const 0)))) (then (unreachable)))
        (table.set (i32.const 0) (ref.func $misbehave))
        (global.set $calls (i32.const 1))
        (i32.store (i32.const 3072) (i32.const 1))
        (drop (table.grow (ref.null func) (i32.const 1))))))
