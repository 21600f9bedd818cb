// Sources of every type, with what tends to break a page.

const fence = '```';
const word = 'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft';

export const markdown = `# A field guide to lanterns

A paragraph with **strong**, *emphasis*, ~~struck out~~, \`inline code\`, [a link](https://example.com/a),
an address https://example.com/${'long-path/'.repeat(14)} and a footnote[^1]. ${word}${word}

## Kinds of lantern

- Paper
- Copper
  - Hammered
  - Cast
    1. By hand
    2. By machine

- [x] Lit
- [ ] Put out

> A quotation that says something worth saying, over more than a single line, so that its edge can be seen.
>
> > And another within it.

### A table

| Name | Light | Price | Remark |
|:-----|:-----:|------:|--------|
| Paper lantern | warm | 12.50 | Keep away from rain, and from children who run |
| Copper lantern | yellow | 180.00 | \`needs polish\` |

| ${Array.from({ length: 14 }, (_, at) => `Column ${at + 1}`).join(' | ')} |
|${'---|'.repeat(14)}
| ${Array.from({ length: 14 }, (_, at) => `a value ${at}`).join(' | ')} |

${fence}rust
//! A lantern.
#[derive(Debug)]
pub struct Lantern<'a> { name: &'a str, lit: bool }

/// Lights it. ${'A comment that goes on and on. '.repeat(6)}
pub fn light(lantern: &mut Lantern<'_>) -> Result<u32, String> {
    lantern.lit = true; // at last
    println!("{} is lit: {:?}\\n", lantern.name, 0x2a_u32);
    Ok(42)
}
${fence}

${fence}python
@dataclass
class Lantern:
    """What shines."""
    name: str = "paper"

    def light(self, n=3.14) -> None:
        return f"{self.name}" if True else None  # comment
${fence}

${fence}js
const light = async (lantern) => { await fetch(\`/api/\${lantern}\`); return /ab+c/i.test("x") ? 1 : null; };
${fence}

${fence}html
<!doctype html><a class="x" href="/y">A &amp; B</a><!-- comment -->
${fence}

${fence}css
.lantern > a:hover { color: #fc0; margin: 0 auto 1.5rem } /* comment */
${fence}

${fence}sql
SELECT name, count(*) FROM lanterns WHERE lit = TRUE AND price > 10.5 -- comment
${fence}

${fence}json
{"name": "paper", "lit": true, "price": 12.5, "tags": [null]}
${fence}

${fence}sh
for f in *.txt; do echo "$f" | grep -q 'a' && exit 1; done # comment
${fence}

${fence}diff
- old line
+ new line
@@ -1 +1 @@
${fence}

${fence}mermaid
flowchart LR
  A[Lantern] --> B{Lit?}
${fence}

#### Fourth level

##### Fifth level

###### Sixth level

Press <kbd>Ctrl</kbd> and <mark>marked</mark> text.

<details><summary>More</summary>

Hidden until it is opened.

</details>

![A dot](data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'%20width='1600'%20height='120'%3E%3Crect%20width='1600'%20height='120'%20fill='teal'/%3E%3C/svg%3E)

---

The end.

[^1]: The footnote, with a [link](https://example.com/b).
`;

export const json = JSON.stringify(
  {
    name: 'Lantern',
    lit: true,
    price: 12.5,
    nothing: null,
    'a key that is rather long, and goes on for some while, as keys of generated documents do': 'short',
    text: `A long text. ${'It goes on and on. '.repeat(20)}${word}${word}`,
    empty: { list: [], object: {} },
    parts: Array.from({ length: 12 }, (_, at) => ({ number: at, name: `part ${at}`, sizes: [at, at * 2, { deep: [[['deeper']]] }] })),
    markup: '<script>alert(1)</script><b>not bold</b>',
  },
  null,
  2,
);

export const csv = [
  'Name,Light,Price,Remark,Where,Since,By,Note,Height,Width,Depth,Colour',
  '"Paper lantern",warm,12.50,"Keep away from rain, and from children who run","Harbour, pier 3",2024-01-05,Ada,,12,20,20,white',
  '"Copper ""old"" lantern",yellow,180.00,"needs polish\nand patience",Market,2023-11-30,Grace,short,40,22,22,copper',
  `Long,${word},1,${'words and words '.repeat(30)},x,y,z,,1,2,3,<b>not bold</b>`,
  'Ragged,row',
  ...Array.from({ length: 60 }, (_, at) => `Lantern ${at},warm,${at}.00,,Store,2025-01-01,Alan,,1,2,3,grey`),
].join('\r\n');

export const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>My own page</title><style>:root{color-scheme:light dark}</style></head>
<body><main><h1>My own page</h1><p id="said">Nothing yet.</p>
<script>document.getElementById('said').textContent = 'My script ran in ' + window.origin;</script></main></body></html>`;

export const mermaid = `flowchart TD
  A[Send it] --> B{Rendered?}
  B -->|yes| C[Link]
  B -->|no| D[Problem]
`;
