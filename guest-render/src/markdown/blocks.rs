//! Blocks that are formatted differently from the plain formatter: headings, code, diagrams, tables and tasks.

use std::cell::Cell;
use std::fmt::{self, Write as _};

use comrak::html::{ChildRendering, Context, format_node_default};
use comrak::nodes::{
    AlertType, ListType, Node, NodeAlert, NodeCodeBlock, NodeHeading, NodeList, NodeTable,
    NodeTaskItem, NodeValue, TableAlignment,
};
use maud::html;

use super::images;
use super::math::FormulaConverter;
use crate::position::to_u32;
use crate::{Diagram, csv, emoji, highlight, mermaid};

/// Bytes of code in a page that are highlighted; the rest is plain.
const MAX_HIGHLIGHTED_BYTES: usize = 512 * 1024;

/// State of the formatter from block to block.
pub(super) struct BlockFormatter<'a> {
    position: &'a Cell<usize>,
    /// Diagrams found so far.
    pub(super) diagrams: Vec<Diagram>,
    tables: u32,
    row: OpenTableRow,
    code_blocks: u32,
    figures: u32,
    /// Number of source lines before the parsed text.
    lines_before: u32,
    /// Bytes of code that may still be highlighted.
    highlightable: usize,
    formulas: FormulaConverter,
}

/// The table row that is being written. Tables are never nested.
#[derive(Default)]
struct OpenTableRow {
    alignments: Vec<TableAlignment>,
    is_header: bool,
    column: usize,
}

impl<'a> BlockFormatter<'a> {
    /// `position` is the formatter's position in the page.
    pub(super) fn new(position: &'a Cell<usize>, lines_before: u32, is_highlighted: bool) -> Self {
        let highlightable = if is_highlighted {
            MAX_HIGHLIGHTED_BYTES
        } else {
            0
        };
        Self {
            position,
            diagrams: Vec::new(),
            tables: 0,
            row: OpenTableRow::default(),
            code_blocks: 0,
            figures: 0,
            lines_before,
            highlightable,
            formulas: FormulaConverter::new(),
        }
    }
}

type FormatterContext<'a, 'o, 'c> = Context<'o, 'c, BlockFormatter<'a>>;

/// Formats a node: by the plain formatter, unless this module has a format for it.
pub(super) fn format_node(
    out: &mut FormatterContext<'_, '_, '_>,
    node: Node<'_>,
    entering: bool,
) -> Result<ChildRendering, fmt::Error> {
    match &node.data().value {
        NodeValue::Paragraph if entering && has_own_direction(node) => {
            out.cr()?;
            out.write_str("<p dir=\"auto\">")?;
        }
        NodeValue::Text(text) if entering && text.contains(':') => emoji::write_escaped(out, text)?,
        NodeValue::BlockQuote if entering => {
            out.cr()?;
            out.write_str("<blockquote dir=\"auto\">\n")?;
        }
        NodeValue::List(list) if entering => open_list(out, list)?,
        NodeValue::Alert(alert) => format_alert(out, alert, entering)?,
        NodeValue::Math(math) if entering => {
            let mut formulas = std::mem::replace(&mut out.user.formulas, FormulaConverter::new());
            let written = formulas.write(out, &math.literal, math.display_math);
            out.user.formulas = formulas;
            written?;
        }
        NodeValue::Image(link) if entering => {
            images::open_image(out, link)?;
            return Ok(ChildRendering::Plain);
        }
        NodeValue::Image(link) => images::close_image(out, link)?,
        NodeValue::HtmlBlock(block) if entering => {
            out.cr()?;
            images::write_html(out, &block.literal)?;
            out.cr()?;
        }
        NodeValue::HtmlInline(html) if entering => images::write_html(out, html)?,
        NodeValue::Heading(heading) => format_heading(out, node, heading, entering)?,
        NodeValue::TaskItem(task) => format_task(out, task, entering)?,
        NodeValue::CodeBlock(block) if entering => {
            let line = node.data().sourcepos.start.line;
            format_code(out, block, line)?;
        }
        NodeValue::CodeBlock(_) => {}
        NodeValue::Table(table) => return format_table(out, node, table, entering),
        NodeValue::TableRow(is_header) => {
            (out.user.row.is_header, out.user.row.column) = (*is_header, 0);
            return format_node_default(out, node, entering);
        }
        NodeValue::TableCell => format_cell(out, node, entering)?,
        _ => return format_node_default(out, node, entering),
    }
    Ok(ChildRendering::HTML)
}

/// Whether a paragraph has a direction of its own. In lists, quotes and alerts the whole block has one, so that markers and bars
/// stand on its side.
fn has_own_direction(node: Node<'_>) -> bool {
    !node.parent().is_some_and(|parent| {
        matches!(
            parent.data().value,
            NodeValue::Item(_)
                | NodeValue::TaskItem(_)
                | NodeValue::BlockQuote
                | NodeValue::Alert(_)
        )
    })
}

/// Opens a list with one direction, so that its markers stand where its text begins.
fn open_list(out: &mut FormatterContext<'_, '_, '_>, list: &NodeList) -> fmt::Result {
    out.cr()?;
    match (list.list_type, list.start) {
        (ListType::Bullet, _) => out.write_str("<ul dir=\"auto\">\n"),
        (ListType::Ordered, 1) => out.write_str("<ol dir=\"auto\">\n"),
        (ListType::Ordered, start) => writeln!(out, "<ol dir=\"auto\" start=\"{start}\">"),
    }
}

/// Formats an alert: GitHub's five kinds, with its class names.
fn format_alert(
    out: &mut FormatterContext<'_, '_, '_>,
    alert: &NodeAlert,
    entering: bool,
) -> fmt::Result {
    out.cr()?;
    if !entering {
        return out.write_str("</div>\n");
    }
    let (kind, title) = match alert.alert_type {
        AlertType::Note => ("note", "Note"),
        AlertType::Tip => ("tip", "Tip"),
        AlertType::Important => ("important", "Important"),
        AlertType::Warning => ("warning", "Warning"),
        AlertType::Caution => ("caution", "Caution"),
    };
    // The alert has the direction of its text; the title has one of its own.
    write!(
        out,
        "<div class=\"markdown-alert markdown-alert-{kind}\" role=\"note\" dir=\"auto\">\n<p class=\"markdown-alert-title\" dir=\"auto\">"
    )?;
    emoji::write_escaped(out, alert.title.as_deref().unwrap_or(title))?;
    out.write_str("</p>\n")
}

/// Formats a heading with a link to itself. The link's mark comes from the styles, so that it is no part of the text.
fn format_heading(
    out: &mut FormatterContext<'_, '_, '_>,
    node: Node<'_>,
    heading: &NodeHeading,
    entering: bool,
) -> fmt::Result {
    let level = heading.level;
    if entering {
        let text = node.collect_text();
        let has_words =
            text.contains(|char: char| char.is_alphanumeric() || matches!(char, '_' | '-'));
        let id = out
            .anchorizer
            .anchorize(if has_words { text.trim() } else { "section" });
        out.cr()?;
        write!(out, "<h{level} id=\"{id}\" dir=\"auto\">")?;
        out.current_anchorized_id = Some(id);
        return Ok(());
    }
    if let Some(id) = out.current_anchorized_id.take() {
        let label = format!("Link to “{}”", node.collect_text());
        let link = html! { a class="anchor" href={ "#" (id) } aria-label=(label) {} };
        out.write_str(&link.0)?;
    }
    writeln!(out, "</h{level}>")
}

fn format_task(
    out: &mut FormatterContext<'_, '_, '_>,
    task: &NodeTaskItem,
    entering: bool,
) -> fmt::Result {
    if !entering {
        return out.write_str("</li>\n");
    }
    out.cr()?;
    out.write_str("<li class=\"task\">")?;
    let is_done = task.symbol.is_some();
    let label = if is_done { "Done" } else { "To do" };
    let checkbox = html! { input type="checkbox" checked[is_done] disabled aria-label=(label); };
    out.write_str(&checkbox.0)?;
    out.write_str(" ")
}

/// Formats a table in a scrollable region that can be reached by keyboard.
fn format_table(
    out: &mut FormatterContext<'_, '_, '_>,
    node: Node<'_>,
    table: &NodeTable,
    entering: bool,
) -> Result<ChildRendering, fmt::Error> {
    if entering {
        out.user.tables += 1;
        out.user.row.alignments.clone_from(&table.alignments);
        let label = format!("Table {}", out.user.tables);
        out.cr()?;
        open_region(out, "scroll", &label)?;
        return format_node_default(out, node, true);
    }
    let children = format_node_default(out, node, false)?;
    out.write_str("</div>\n")?;
    Ok(children)
}

/// Formats a cell. The column's alignment is a style, because the attribute of the plain formatter is obsolete HTML.
fn format_cell(
    out: &mut FormatterContext<'_, '_, '_>,
    node: Node<'_>,
    entering: bool,
) -> fmt::Result {
    let tag = if out.user.row.is_header { "th" } else { "td" };
    if !entering {
        return write!(out, "</{tag}>");
    }
    let alignment = match out.user.row.alignments.get(out.user.row.column) {
        Some(TableAlignment::Left) => " style=\"text-align:left\"",
        Some(TableAlignment::Center) => " style=\"text-align:center\"",
        Some(TableAlignment::Right) => " style=\"text-align:right\"",
        Some(TableAlignment::None) | None => "",
    };
    out.user.row.column += 1;
    out.cr()?;
    // Numbers are not broken into lines, however narrow the column is.
    let is_number = |only: Node<'_>| matches!(&only.data().value, NodeValue::Text(text) if csv::is_number(text));
    let mut children = node.children();
    let class = match (children.next(), children.next()) {
        (None, _) => "",
        (Some(only), None) if is_number(only) => " class=\"n\"",
        _ => " dir=\"auto\"",
    };
    write!(out, "<{tag}{class}{alignment}>")
}

fn open_region(out: &mut FormatterContext<'_, '_, '_>, class: &str, label: &str) -> fmt::Result {
    writeln!(
        out,
        "<div class=\"{class}\" role=\"region\" tabindex=\"0\" aria-label=\"{label}\">"
    )
}

fn format_code(
    out: &mut FormatterContext<'_, '_, '_>,
    block: &NodeCodeBlock,
    line: usize,
) -> fmt::Result {
    // A fence may say more than the language: `rust,ignore`, `js {1-3}`, `py title="x"`.
    let language = block
        .info
        .split([' ', '\t', ',', '{'])
        .next()
        .unwrap_or_default();
    out.cr()?;
    if language.eq_ignore_ascii_case("mermaid") {
        out.user.figures += 1;
        let label = format!("Diagram {}", out.user.figures);
        let position = out.user.position;
        // The diagram begins in the line below its fence.
        let first = to_u32(line).saturating_add(out.user.lines_before) + 1;
        let diagram = mermaid::write_figure(out, position, &block.literal, &label, first)?;
        out.user.diagrams.push(diagram);
        return out.write_str("\n");
    }
    if language.eq_ignore_ascii_case("math") {
        out.write_str("<p>")?;
        let mut formulas = std::mem::replace(&mut out.user.formulas, FormulaConverter::new());
        let written = formulas.write(out, &block.literal, true);
        out.user.formulas = formulas;
        written?;
        return out.write_str("</p>\n");
    }
    out.user.code_blocks += 1;
    let label = format!("Code {}", out.user.code_blocks);
    open_region(out, "code", &label)?;
    if language.is_empty() {
        out.write_str("<pre><code>")?;
    } else {
        out.write_str("<pre><code class=\"language-")?;
        out.escape(language)?;
        out.write_str("\">")?;
    }
    if block.literal.len() <= out.user.highlightable {
        out.user.highlightable -= block.literal.len();
        highlight::write_highlighted(out, language, &block.literal)?;
    } else {
        out.escape(&block.literal)?;
    }
    out.write_str("</code></pre>\n</div>\n")
}
