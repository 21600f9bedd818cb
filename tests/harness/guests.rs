//! Guests for tests: a small renderer that passes the check, signs what it makes, and may fail where it is told to.

use std::path::{Path, PathBuf};

/// Behaviours of a renderer with a source that begins with one of the words `trap`, `spin`, `lies`, `deny` and `slow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RendererBehaviour {
    /// Renders it like any other.
    Good,
    /// Traps, never ends, names a diagram where there can be none, or does not know the type.
    Bad,
    /// Takes a second or two for it.
    Slow,
}

/// Collects the pieces that a page is made of, and says where they lie in the guest's memory.
struct PageSegments {
    data: String,
    length: usize,
}

/// Where the pieces begin, and where what a call allocates does.
const DATA: usize = 1024;
const HEAP: usize = 8192;

impl PageSegments {
    /// The place and the length of a piece, as constants of the text format.
    fn add_segment(&mut self, text: &str) -> String {
        let at = DATA + self.length;
        for byte in text.bytes() {
            self.data.push_str(&format!("\\{byte:02x}"));
        }
        self.length += text.len();
        assert!(DATA + self.length < HEAP);
        format!("(i32.const {at}) (i32.const {})", text.len())
    }

    /// A statement that writes a piece to the page.
    fn emit_write(&mut self, text: &str) -> String {
        format!("(call $put {})", self.add_segment(text))
    }
}

/// A renderer as a component. Its pages begin and end with `sign`, and so does the one diagram that it names in Markdown.
pub fn renderer(sign: &str, behaviour: RendererBehaviour) -> Vec<u8> {
    let mut pieces = PageSegments {
        data: String::new(),
        length: 0,
    };
    let core = core(&mut pieces, sign, behaviour);
    wat::parse_str(format!("(component {TYPES} {core} {EXPORTS})")).unwrap()
}

/// The answer `unsupported`.
const UNSUPPORTED: &str =
    "(local.set $answer (call $alloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 32)))
    (i32.store8 (local.get $answer) (i32.const 1))
    (i32.store8 offset=4 (local.get $answer) (i32.const 2))
    (return (local.get $answer))";

/// A renderer of `svc:render@1.0.0`; its pages are signed by `before`.
pub fn renderer_of_interface_1() -> Vec<u8> {
    parse(include_str!("../guests/render-1/renderer.wat"))
}

/// A component with another digest that does the same: with a custom section, which means nothing.
pub fn with_other_digest(component: &[u8], number: u8) -> Vec<u8> {
    let mut component = component.to_vec();
    component.extend([0, 3, 1, b'n', number]);
    component
}

/// Writes a component to a file of a folder.
pub fn write(folder: &Path, name: &str, component: &[u8]) -> PathBuf {
    let path = folder.join(format!("{name}.wasm"));
    std::fs::write(&path, component).unwrap();
    path
}

const TYPES: &str = r#"
  (import "svc:render/types@2.0.0" (instance $types
    (type $pl (record (field "line" u32) (field "column" u32)))
    (export "place" (type $place (eq $pl)))
    (type $rs (record (field "src" string) (field "slug" string)))
    (export "runtime-script" (type $script (eq $rs)))
    (type $fo (record (field "raw" (option string)) (field "expires-at" (option string)) (field "report" (option string))))
    (export "foot" (type $foot (eq $fo)))
    (type $so (record (field "content-type" string) (field "title" (option string)) (field "name" (option string))
      (field "text" string) (field "runtime" (option $script)) (field "page-bytes" u32) (field "foot" (option $foot))
      (field "is-private" bool)))
    (export "source" (type (eq $so)))
    (type $di (record (field "text" string) (field "start" u32) (field "end" u32) (field "line" u32)))
    (export "diagram" (type $diagram (eq $di)))
    (type $pa (record (field "html" string) (field "diagrams" (list $diagram)) (field "title" (option string))))
    (export "page" (type (eq $pa)))
    (type $ma (record (field "message" string) (field "place" (option $place))))
    (export "malformed" (type $malformed (eq $ma)))
    (type $re (variant (case "malformed" $malformed) (case "too-large") (case "unsupported")))
    (export "render-error" (type (eq $re)))
    (type $de (variant (case "malformed" $malformed) (case "unsupported") (case "too-large" u32) (case "too-complex")))
    (export "draw-error" (type (eq $de)))))
  (alias export $types "source" (type $source))
  (alias export $types "page" (type $page))
  (alias export $types "render-error" (type $render-error))
  (alias export $types "draw-error" (type $draw-error))"#;

const EXPORTS: &str = r#"
  (core instance $i (instantiate $guest))
  (func $render (param "source" $source) (result (result $page (error $render-error)))
    (canon lift (core func $i "render") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
  (func $draw (param "text" string) (param "number" u32) (result (result string (error $draw-error)))
    (canon lift (core func $i "draw") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
  (instance $renderer (export "render" (func $render)) (export "draw" (func $draw)))
  (export "svc:render/renderer@2.0.0" (instance $renderer))"#;

/// Allocation that never frees, and writing to the page with and without escapes.
const LIBRARY: &str = r#"
    (func $alloc (export "realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
      (local $at i32) (local $have i32)
      (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
      (global.set $heap (i32.add (local.get $at) (local.get $size)))
      (local.set $have (i32.mul (memory.size) (i32.const 65536)))
      (if (i32.gt_u (global.get $heap) (local.get $have)) (then (drop (memory.grow (i32.add (i32.const 1)
        (i32.div_u (i32.sub (global.get $heap) (local.get $have)) (i32.const 65536)))))))
      (memory.copy (local.get $at) (local.get $old) (local.get $old_size))
      (local.get $at))
    (func $put (param $at i32) (param $length i32)
      (memory.copy (global.get $out) (local.get $at) (local.get $length))
      (global.set $out (i32.add (global.get $out) (local.get $length))))
    (func $escape (param $at i32) (param $length i32)
      (local $end i32) (local $byte i32)
      (local.set $end (i32.add (local.get $at) (local.get $length)))
      (block $done (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $byte (i32.load8_u (local.get $at)))
        (if (i32.eq (local.get $byte) (i32.const 38)) (then {amp})
          (else (if (i32.eq (local.get $byte) (i32.const 60)) (then {lt})
            (else (call $put (local.get $at) (i32.const 1))))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next))))
    (func $script (param $live i32) (param $src i32) (param $src_length i32) (param $slug i32) (param $slug_length i32)
      (if (local.get $live) (then {script}
        (call $put (local.get $src) (local.get $src_length)) {slug}
        (call $put (local.get $slug) (local.get $slug_length)) {end})))"#;

fn core(pieces: &mut PageSegments, sign: &str, behaviour: RendererBehaviour) -> String {
    let library = [
        ("{amp}", "&amp;"),
        ("{lt}", "&lt;"),
        ("{script}", "<script src=\""),
        ("{slug}", "\" data-slug=\""),
        ("{end}", "\"></script>"),
    ]
    .iter()
    .fold(LIBRARY.to_owned(), |library, (name, text)| {
        library.replace(name, &pieces.emit_write(text))
    });
    let head = pieces.emit_write("<!doctype html><html lang=\"en\"><head>");
    let title = pieces.emit_write(
        "<meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>",
    );
    let body = pieces.emit_write(&format!("</title></head><body><p>begun by {sign}</p><pre>"));
    let figure = pieces.emit_write("</pre><figure>");
    let fallback = pieces.emit_write("no drawing");
    let end = pieces.emit_write(&format!("</figure><p>ended by {sign}</p></body></html>"));
    let drawing = pieces.add_segment(&format!(
        "<svg role=\"img\"><title>drawn by {sign}</title></svg>"
    ));
    let misbehaves = |word: &str, what: &str| {
        let word = word.as_bytes().try_into().map(u32::from_le_bytes).unwrap();
        format!(
            "(if (i32.ge_u (local.get $text_length) (i32.const 4)) (then
               (if (i32.eq (i32.load align=1 (local.get $text)) (i32.const {word})) (then {what}))))"
        )
    };
    let (early, late) = match behaviour {
        RendererBehaviour::Good => (String::new(), String::new()),
        RendererBehaviour::Bad => (
            misbehaves("trap", "unreachable")
                + &misbehaves("spin", "(loop $again (br $again))")
                + &misbehaves("deny", UNSUPPORTED),
            misbehaves("lies", "(local.set $start (i32.const 99999999))"),
        ),
        RendererBehaviour::Slow => (
            misbehaves(
                "slow",
                "(loop $again (br_if $again (i32.lt_u (local.tee $size
                   (i32.add (local.get $size) (i32.const 1))) (i32.const 500000000))))",
            ),
            String::new(),
        ),
    };
    let data = &pieces.data;
    // Of a source's type the second letter says enough here: `t` is of html, `a` of markdown.
    format!(
        r#"
  (core module $guest
    (memory (export "memory") 4)
    (global $heap (mut i32) (i32.const {HEAP}))
    (global $out (mut i32) (i32.const 0))
    (data (i32.const {DATA}) "{data}")
    {library}
    (func (export "render") (param $source i32) (result i32)
      (local $type i32) (local $title i32) (local $title_length i32)
      (local $text i32) (local $text_length i32) (local $live i32) (local $src i32) (local $src_length i32)
      (local $slug i32) (local $slug_length i32) (local $most i32)
      (local $page i32) (local $size i32) (local $start i32) (local $end i32) (local $answer i32) (local $diagram i32)
      (local.set $type (i32.load8_u offset=1 (i32.load (local.get $source))))
      (if (i32.load8_u offset=8 (local.get $source)) (then
        (local.set $title (i32.load offset=12 (local.get $source)))
        (local.set $title_length (i32.load offset=16 (local.get $source)))))
      (local.set $text (i32.load offset=32 (local.get $source)))
      (local.set $text_length (i32.load offset=36 (local.get $source)))
      (local.set $live (i32.load8_u offset=40 (local.get $source)))
      (if (local.get $live) (then
        (local.set $src (i32.load offset=44 (local.get $source)))
        (local.set $src_length (i32.load offset=48 (local.get $source)))
        (local.set $slug (i32.load offset=52 (local.get $source)))
        (local.set $slug_length (i32.load offset=56 (local.get $source)))))
      (local.set $most (i32.load offset=60 (local.get $source)))
      {early}
      (local.set $size (i32.add (i32.const 2048) (i32.mul (i32.const 5)
        (i32.add (i32.add (local.get $title_length) (local.get $text_length))
          (i32.add (local.get $src_length) (local.get $slug_length))))))
      (local.set $page (call $alloc (i32.const 0) (i32.const 0) (i32.const 1) (local.get $size)))
      (global.set $out (local.get $page))
      (if (i32.eq (local.get $type) (i32.const 116)) (then
        (call $script (local.get $live) (local.get $src) (local.get $src_length) (local.get $slug) (local.get $slug_length))
        (call $put (local.get $text) (local.get $text_length)))
      (else
        {head}
        (call $script (local.get $live) (local.get $src) (local.get $src_length) (local.get $slug) (local.get $slug_length))
        {title}
        (call $escape (local.get $title) (local.get $title_length))
        {body}
        (call $escape (local.get $text) (local.get $text_length))
        {figure}
        (local.set $start (i32.sub (global.get $out) (local.get $page)))
        {fallback}
        (local.set $end (i32.sub (global.get $out) (local.get $page)))
        {end}))
      {late}
      (local.set $answer (call $alloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 32)))
      (if (i32.gt_u (i32.sub (global.get $out) (local.get $page)) (local.get $most)) (then
        (i32.store8 (local.get $answer) (i32.const 1))
        (i32.store8 offset=4 (local.get $answer) (i32.const 1))
        (return (local.get $answer))))
      (i32.store (local.get $answer) (i32.const 0))
      (i32.store offset=4 (local.get $answer) (local.get $page))
      (i32.store offset=8 (local.get $answer) (i32.sub (global.get $out) (local.get $page)))
      (local.set $diagram (call $alloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 20)))
      (i32.store (local.get $diagram) (i32.const {DATA}))
      (i32.store offset=4 (local.get $diagram) (i32.const 4))
      (i32.store offset=8 (local.get $diagram) (local.get $start))
      (i32.store offset=12 (local.get $diagram) (local.get $end))
      (i32.store offset=16 (local.get $diagram) (i32.const 1))
      (i32.store offset=12 (local.get $answer) (local.get $diagram))
      (i32.store offset=16 (local.get $answer) (i32.eq (local.get $type) (i32.const 97)))
      (i32.store offset=20 (local.get $answer) (i32.ne (local.get $title_length) (i32.const 0)))
      (i32.store offset=24 (local.get $answer) (local.get $title))
      (i32.store offset=28 (local.get $answer) (local.get $title_length))
      (local.get $answer))
    (func (export "draw") (param $text i32) (param $text_length i32) (param $number i32) (result i32)
      (local $answer i32)
      (global.set $out (call $alloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 1024)))
      (local.set $answer (call $alloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 32)))
      (i32.store (local.get $answer) (i32.const 0))
      (i32.store offset=4 (local.get $answer) (global.get $out))
      (call $put {drawing})
      (i32.store offset=8 (local.get $answer) (i32.sub (global.get $out) (i32.load offset=4 (local.get $answer))))
      (local.get $answer)))"#
    )
}

/// A component of the text format.
pub fn parse(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}
