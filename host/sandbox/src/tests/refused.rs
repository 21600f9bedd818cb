//! Components that may not serve at all: what they ask for, what they lack, and what they do before their first call.

use super::*;

use super::super::bindings::gate::GatePre;
use super::super::versions::PreparedRenderer;
use super::super::wasi::CallStoreState;

/// Why neither world takes a component.
#[track_caller]
fn refusals(component: &[u8]) -> [String; 2] {
    let registry = registry();
    let words = |error: Option<anyhow::Error>| {
        let error = error.expect("it is refused");
        format!("{error:#}")
    };
    [
        words(
            registry
                .prepare_component::<GatePre<CallStoreState>>(component)
                .err(),
        ),
        words(
            registry
                .prepare_component::<PreparedRenderer>(component)
                .err(),
        ),
    ]
}

#[test]
fn a_guest_that_imports_the_outside_world_is_refused_by_name() {
    for import in [
        "wasi:filesystem/preopens@0.2.6",
        "wasi:filesystem/types@0.2.6",
        "wasi:sockets/instance-network@0.2.6",
        "wasi:sockets/ip-name-lookup@0.2.6",
        "wasi:sockets/network@0.2.6",
        "wasi:sockets/tcp@0.2.6",
        "wasi:sockets/tcp-create-socket@0.2.6",
        "wasi:sockets/udp@0.2.6",
        "wasi:sockets/udp-create-socket@0.2.6",
        "wasi:http/outgoing-handler@0.2.0",
        "wasi:http/types@0.2.6",
        // Randomness differs from call to call, and the seed that may be asked for does not.
        "wasi:random/random@0.2.6",
        "wasi:random/insecure@0.2.6",
        // The clocks that guests are given stand still; those of another version may not.
        "wasi:clocks/wall-clock@0.3.0",
        "wasi:clocks/timezone@0.2.6",
        "wasi:cli/environment@0.1.0",
        "wasi:keyvalue/store@0.2.0-draft",
        "somebody:else/thing@1.0.0",
    ] {
        let text =
            format!(r#"(component (import "{import}" (instance (export "anything" (func)))))"#);
        for refusal in refusals(&wat::parse_str(text).unwrap()) {
            assert!(refusal.contains(import), "{import}: {refusal}");
        }
    }
    for import in ["free-hand", "print"] {
        let text = format!(r#"(component (import "{import}" (func)))"#);
        for refusal in refusals(&wat::parse_str(text).unwrap()) {
            assert!(refusal.contains(import), "{import}: {refusal}");
        }
    }
}

#[test]
fn a_component_that_is_no_guest_is_refused() {
    let judge = |version: &str, parameters: &str, result: &str, core: &str| {
        format!(
            r#"(component
  (core module $m (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 16))
    (func (export "check") {core}))
  (core instance $i (instantiate $m))
  (func $check {parameters} {result}
    (canon lift (core func $i "check") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
  (instance $judge (export "check" (func $check)))
  (export "svc:gate/judge@{version}" (instance $judge)))"#
        )
    };
    let empty = judge("1.0.0", "", "", "");
    let untyped = judge(
        "1.0.0",
        r#"(param "sql" string) (param "purpose" u32)"#,
        "(result bool)",
        "(param i32 i32 i32) (result i32) (i32.const 0)",
    );
    let later = judge("2.0.0", "", "", "");
    for text in [
        "(component)",
        r#"(component (instance $judge) (export "svc:gate/judge@1.0.0" (instance $judge)))"#,
        r#"(component (core module $m) (export "svc:gate/judge@1.0.0" (core module $m)))"#,
        &empty,
        &untyped,
        &later,
    ] {
        for refusal in refusals(&wat::parse_str(text).unwrap()) {
            // Exports are missing, or are of other types.
            let why = ["it is not a", "failed to convert function"];
            let found = why.iter().any(|why| refusal.contains(why));
            assert!(found, "{text}: {refusal}");
        }
    }
    let whole = wat::parse_str("(component)").unwrap();
    let module = wat::parse_str("(module)").unwrap();
    for bytes in [
        b"not a component".as_slice(),
        b"",
        &whole[..whole.len() - 1],
        &module,
    ] {
        for refusal in refusals(bytes) {
            assert!(refusal.contains("it does not compile"), "{refusal}");
        }
    }
}

#[test]
fn what_a_component_does_before_its_first_call_is_bounded() {
    let registry = registry();
    let endless = "(func $start (loop $again (br $again))) (start $start)";
    let trap = "(func $start unreachable) (start $start)";
    let tables = |count| "(table 1 funcref)".repeat(count);
    // It has one more beside its module's.
    let memories = |count| "(memory 1)".repeat(count);
    for (pages, more, why) in [
        (1, endless, "all fuel consumed"),
        (1, trap, "unreachable"),
        (3000, "", "bytes of memory"),
        (65536, "", "bytes of memory"),
        (1, "(table 200000 funcref)", "table"),
        (1, &memories(4), "memories"),
        (1, &tables(5), "tables"),
    ] {
        // A gate in all but what it begins with.
        let component = gate_wat(pages, more, "");
        let refused = registry
            .prepare_component::<GatePre<CallStoreState>>(&component)
            .err();
        let refused = refused.map(|error| format!("{error:#}"));
        let found = refused.as_ref().is_some_and(|text| text.contains(why));
        assert!(found, "{why}: {refused:?}");
    }
    for more in ["", &memories(3), &tables(4)] {
        let harmless = gate_wat(1, more, "");
        let admitted = registry.prepare_component::<GatePre<CallStoreState>>(&harmless);
        assert!(admitted.is_ok(), "{more}: {:?}", admitted.err());
    }
}

#[test]
fn a_component_of_many_components_is_refused_and_not_the_end_of_the_host() {
    // Memories on both sides of a call between components: the compiler joins them with a module that has two.
    let inner = r#"(component $inner
    (core module $m (memory (export "memory") 1)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 16))
      (func (export "f") (param i32 i32)))
    (core instance $i (instantiate $m))
    (func (export "f") (param "text" string)
      (canon lift (core func $i "f") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))"#;
    let text = format!(
        r#"(component {inner}
  (instance $a (instantiate $inner))
  (component $outer
    (import "f" (func $f (param "text" string)))
    (core module $libc (memory (export "memory") 1)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 16)))
    (core instance $l (instantiate $libc))
    (core func $g (canon lower (func $f) (memory (core memory $l "memory")) (realloc (core func $l "realloc"))))
    (core module $m (import "x" "g" (func $g (param i32 i32)))
      (func (export "h") (call $g (i32.const 0) (i32.const 1))))
    (core instance $i (instantiate $m (with "x" (instance (export "g" (func $g))))))
    (func (export "h") (canon lift (core func $i "h"))))
  (instance $b (instantiate $outer (with "f" (func $a "f"))))
  (export "h" (func $b "h")))"#
    );
    for refusal in refusals(&wat::parse_str(text).unwrap()) {
        // It has been compiled.
        assert!(refusal.contains("it is not a"), "{refusal}");
    }
}
