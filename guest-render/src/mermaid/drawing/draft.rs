//! Draft of a drawing by merman: its settings, and its errors in an author's words.
//!
//! A draft is not safe to serve: the rest of this folder rewrites it.

use std::sync::Arc;

use merman::svg::{
    DeterministicTextMeasurer, LayoutOptions, MeasurementProfileId, SvgPipeline, SvgRenderOptions,
    TextMeasurementPolicy, TextMeasurementProfile, TextMeasurementProfileIdentity, TextMeasurer,
};
use merman::{
    MermaidEngine, OperationControl, ParseOptions, RenderError, RenderRequest, Renderer,
    SourcePresentationConfig, SvgEnvironment, SvgRequest,
};
use serde_json::json;

use super::prepare::{self, PreparedSource};
use super::safe::{self, DrawingRejection};
use super::text;
use crate::position::position_at;
use crate::{DrawError, Malformed};

/// Id of the draft, which merman's ids begin with. None of them is served.
const DRAFT_ID: &str = "drawing";

/// Width of the screen that some diagrams ask for, in CSS pixels.
const SCREEN_WIDTH: f64 = 1280.0;

/// Size limit of sources that are searched for the faulty line, in bytes.
const MAX_SEARCHED_BYTES: usize = 4 << 10;

/// Draws a diagram; `number` is its index in the page.
pub(crate) fn draw(source: &str, number: u32) -> Result<String, DrawError> {
    let prepared = prepare::prepare_source(source);
    let drawn = match draw_draft(&prepared.text) {
        Err(DraftError::Formulas) => draw_draft(&prepare::without_formulas(&prepared.text)),
        Err(DraftError::Empty) if prepare::diagram_type(source) == "sequenceDiagram" => {
            Ok(NO_ACTORS.to_owned())
        }
        drawn => drawn,
    };
    let drawn = drawn.map_err(|refused| refused.into_draw_error(source, &prepared))?;
    let is_dark = prepare::is_made_for_dark(source);
    safe::rewrite(&drawn, DRAFT_ID, number, is_dark).map_err(|error| match error {
        DrawingRejection::TooLarge => DrawError::TooComplex,
        error => malformed_error(
            source,
            format!("The diagram cannot be shown: {error}."),
            None,
        ),
    })
}

/// Drawing by mermaid.js of a sequence diagram without participants.
const NO_ACTORS: &str = r#"<svg id="drawing" xmlns="http://www.w3.org/2000/svg" viewBox="-50 -10 100 50" aria-roledescription="sequence"/>"#;

/// Draws the draft with merman.
fn draw_draft(source: &str) -> Result<String, DraftError> {
    let request = SvgRequest {
        environment: svg_environment()?,
        pipeline: Some(SvgPipeline::parity()),
        options: SvgRenderOptions {
            diagram_id: Some(DRAFT_ID.to_owned()),
            ..SvgRenderOptions::default()
        },
        layout: LayoutOptions::headless_svg_defaults().with_screen_available_width(SCREEN_WIDTH),
        ..SvgRequest::default()
    };
    let settings = mermaid_settings(prepare::diagram_type(source), prepare::names_theme(source));
    let engine =
        MermaidEngine::new().with_site_config(SourcePresentationConfig::from_value(settings));
    let drawn = Renderer::new()
        .with_presentation_engine(engine)
        .with_parse_options(ParseOptions::strict())
        .render_svg_data(RenderRequest::svg(source, OperationControl::new(), request));
    match drawn {
        Ok(Some(svg)) => Ok(svg),
        Ok(None) => Err(DraftError::no_diagram()),
        Err(error) => Err(classify_error(&error)),
    }
}

const UNSUPPORTED_MESSAGE: &str = "This type of diagram is not drawn here: use another, such as flowchart, sequenceDiagram, \
    classDiagram, stateDiagram-v2, erDiagram, gantt, pie, mindmap, timeline or treemap";
const NO_TYPE_MESSAGE: &str = "No type of diagram is named: begin with one, as in flowchart TD";

/// Colours of a chart's series: each contrasts with the background, and with its neighbours.
const SERIES_COLOURS: &str =
    "#737bd9,#c2571a,#2b8a57,#b03a74,#2f7fb5,#8a6d1f,#6d5a9c,#3f8383,#a04040,#5d6b7a";

/// Returns the settings that all diagrams share. An author may choose a theme and its variables, but not the `secure` settings.
fn mermaid_settings(kind: &str, has_theme: bool) -> serde_json::Value {
    // Mind maps grow around their root.
    let layout = if kind == "mindmap" {
        "cose-bilkent"
    } else {
        "dagre"
    };
    let mut settings = json!({
        "theme": "default",
        "look": "classic",
        "layout": layout,
        "htmlLabels": true,
        "maxEdges": 5000,
        "maxTextSize": 100_000,
        "flowchart": { "minNodeWidth": 0, "wrappingWidth": 200 },
        "state": { "minNodeWidth": 0 },
        // White is readable on these greys, but not on the usual lighter ones.
        "c4": {
            "external_system_bg_color": "#6f6f6f",
            "external_system_db_bg_color": "#6f6f6f",
            "external_system_queue_bg_color": "#6f6f6f",
            "external_container_bg_color": "#6f6f6f",
            "external_container_db_bg_color": "#6f6f6f",
            "external_container_queue_bg_color": "#6f6f6f",
            "external_component_bg_color": "#6f6f6f",
            "external_component_db_bg_color": "#6f6f6f",
            "external_component_queue_bg_color": "#6f6f6f",
        },
        "secure": [
            "secure", "securityLevel", "startOnLoad", "maxTextSize", "suppressErrorRendering", "maxEdges",
            "themeCSS", "dompurifyConfig", "htmlLabels", "layout", "fontFamily", "altFontFamily",
        ],
    });
    let is_by_scale = matches!(
        kind,
        "mindmap" | "timeline" | "kanban" | "treemap" | "treemap-beta"
    );
    if is_by_scale && !has_theme {
        // The theme's white is hard to read on its lighter colours.
        let labels = (0..12).map(|number| (format!("cScaleLabel{number}"), json!("#000000")));
        settings["themeVariables"] = serde_json::Value::Object(labels.collect());
    }
    if kind.starts_with("xychart") && !has_theme {
        // The theme's own first colour is next to that of the background.
        settings["themeVariables"] = json!({ "xyChart": { "plotColorPalette": SERIES_COLOURS } });
    }
    if kind == "gantt" && !has_theme {
        // White is readable on these colours, but not on the theme's violet and red.
        settings["themeVariables"] =
            json!({ "taskBkgColor": "#5f66c4", "critBkgColor": "#d90000" });
    }
    settings
}

fn svg_environment() -> Result<SvgEnvironment, DraftError> {
    let identity = MeasurementProfileId::new("arial")
        .and_then(|profile| TextMeasurementProfileIdentity::new(profile, "1"))
        .map_err(|error| DraftError::message(error.to_string(), None))?;
    let profile = TextMeasurementProfile::new(identity, text_measurer());
    let measuring = TextMeasurementPolicy::uniform(profile);
    Ok(SvgEnvironment::deterministic().with_text_measurement_policy(measuring))
}

/// Measures labels by the advances of the font that the page asks for.
fn text_measurer() -> Arc<dyn TextMeasurer + Send + Sync> {
    DeterministicTextMeasurer::default().with_width_callback(|text, style| {
        let is_bold = style.font_weight.as_deref().is_some_and(text::is_bold);
        text::line_width(text, is_bold, style.font_size)
    })
}

/// Reason why there is no draft.
enum DraftError {
    TooComplex,
    /// The source has formulas, which are not drawn.
    Formulas,
    /// The source has nothing that could be drawn.
    Empty,
    Message {
        message: String,
        /// Offset in the text that merman was given, if it is known.
        offset: Option<usize>,
    },
}

impl DraftError {
    fn message(message: String, offset: Option<usize>) -> Self {
        Self::Message { message, offset }
    }

    /// The fault is at the first word.
    fn no_diagram() -> Self {
        Self::message(NO_TYPE_MESSAGE.to_owned(), Some(0))
    }

    /// Phrases the error for the author, with the position where it is certain.
    fn into_draw_error(self, source: &str, prepared: &PreparedSource<'_>) -> DrawError {
        let (message, offset) = match self {
            Self::TooComplex => return DrawError::TooComplex,
            Self::Formulas => ("lacks capability".to_owned(), None),
            Self::Empty => ("invalid semantic model".to_owned(), None),
            Self::Message { message, offset } => (message, offset),
        };
        let told = prepare::rephrase(&message);
        if message == NO_TYPE_MESSAGE || message == UNSUPPORTED_MESSAGE {
            let word = prepare::diagram_type(source);
            let at = source.find(word).filter(|_| !word.is_empty()).unwrap_or(0);
            return malformed_error(source, told, Some(at));
        }
        let offset = offset.map(|offset| prepared.source_offset(offset));
        // The end of a source is where the parser stopped, and seldom the fault.
        let offset = match offset.filter(|offset| *offset < source.trim_end().len()) {
            None => end_of_first_failing_line(&message, source),
            found => found,
        };
        malformed_error(source, told, offset)
    }
}

/// Returns the offset of the first line at which the source fails for the same reason: later lines are not to blame.
fn end_of_first_failing_line(message: &str, source: &str) -> Option<usize> {
    if source.len() > MAX_SEARCHED_BYTES {
        return None;
    }
    let reason = prepare::rephrase(message);
    let ends: Vec<usize> = source
        .split_inclusive('\n')
        .scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        })
        .collect();
    let is_refused = |lines: usize| {
        let text = prepare::prepare_source(&source[..ends[lines - 1]]);
        matches!(draw_draft(&text.text), Err(DraftError::Message { message, .. }) if prepare::rephrase(&message) == reason)
    };
    let (mut good, mut bad) = (0, ends.len());
    if bad == 0 || !is_refused(bad) {
        return None;
    }
    while bad - good > 1 {
        let middle = good.midpoint(bad);
        if is_refused(middle) {
            bad = middle;
        } else {
            good = middle;
        }
    }
    let start = if good == 0 { 0 } else { ends[good - 1] };
    let line = &source[start..ends[bad - 1]];
    Some(start + line.len() - line.trim_start().len())
}

/// Classifies an error of merman.
fn classify_error(error: &RenderError) -> DraftError {
    match error {
        RenderError::ResourceLimitExceeded(_) => DraftError::TooComplex,
        RenderError::Parse(diagnostic) if diagnostic.is_resource_limit() => DraftError::TooComplex,
        RenderError::Parse(diagnostic) => {
            let details = diagnostic.terminal_diagnostic_details();
            match details.code.as_str() {
                "merman.parse.no_diagram_detected" => DraftError::no_diagram(),
                "merman.parse.unsupported_diagram" => {
                    DraftError::message(UNSUPPORTED_MESSAGE.to_owned(), Some(0))
                }
                _ => DraftError::message(
                    diagnostic.terminal_safe_message(),
                    details.span.map(|span| span.start),
                ),
            }
        }
        RenderError::NoDiagram => DraftError::no_diagram(),
        other => {
            let message = other.to_string();
            if message.contains("capability `math`") {
                DraftError::Formulas
            } else if message.contains("no actorOrder") {
                DraftError::Empty
            } else {
                DraftError::message(message, None)
            }
        }
    }
}

fn malformed_error(source: &str, message: String, offset: Option<usize>) -> DrawError {
    let place = offset.map(|offset| position_at(source, offset));
    DrawError::Malformed(Malformed { message, place })
}
