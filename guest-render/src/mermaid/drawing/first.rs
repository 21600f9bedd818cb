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

use super::prepare::{self, Prepared};
use super::safe::{self, Unsafe};
use super::text;
use crate::place::place_of;
use crate::{DrawError, Malformed};

/// Id of the draft, which merman's ids begin with. None of them is served.
const ID: &str = "drawing";

/// Width of the screen that some diagrams ask for, in CSS pixels.
const SCREEN: f64 = 1280.0;

/// Size limit of sources that are searched for the faulty line, in bytes.
const SEARCHED: usize = 4 << 10;

/// Draws a diagram; `number` is its index in the page.
pub(crate) fn draw(source: &str, number: u32) -> Result<String, DrawError> {
    let prepared = prepare::prepared(source);
    let drawn = match first(&prepared.text) {
        Err(Refused::Formulas) => first(&prepare::without_formulas(&prepared.text)),
        Err(Refused::Empty) if prepare::kind(source) == "sequenceDiagram" => {
            Ok(NO_ACTORS.to_owned())
        }
        drawn => drawn,
    };
    let drawn = drawn.map_err(|refused| refused.told(source, &prepared))?;
    let is_dark = prepare::is_made_for_dark(source);
    safe::rewrite(&drawn, ID, number, is_dark).map_err(|error| match error {
        Unsafe::TooLarge => DrawError::TooComplex,
        error => refusal(
            source,
            format!("The diagram cannot be shown: {error}."),
            None,
        ),
    })
}

/// Drawing by mermaid.js of a sequence diagram without participants.
const NO_ACTORS: &str = r#"<svg id="drawing" xmlns="http://www.w3.org/2000/svg" viewBox="-50 -10 100 50" aria-roledescription="sequence"/>"#;

/// Draws the draft with merman.
fn first(source: &str) -> Result<String, Refused> {
    let request = SvgRequest {
        environment: environment()?,
        pipeline: Some(SvgPipeline::parity()),
        options: SvgRenderOptions {
            diagram_id: Some(ID.to_owned()),
            ..SvgRenderOptions::default()
        },
        layout: LayoutOptions::headless_svg_defaults().with_screen_available_width(SCREEN),
        ..SvgRequest::default()
    };
    let settings = settings(prepare::kind(source), prepare::names_theme(source));
    let engine =
        MermaidEngine::new().with_site_config(SourcePresentationConfig::from_value(settings));
    let drawn = Renderer::new()
        .with_presentation_engine(engine)
        .with_parse_options(ParseOptions::strict())
        .render_svg_data(RenderRequest::svg(source, OperationControl::new(), request));
    match drawn {
        Ok(Some(svg)) => Ok(svg),
        Ok(None) => Err(Refused::no_diagram()),
        Err(error) => Err(refused(&error)),
    }
}

const NOT_DRAWN: &str = "This type of diagram is not drawn here: use another, such as flowchart, sequenceDiagram, \
    classDiagram, stateDiagram-v2, erDiagram, gantt, pie, mindmap, timeline or treemap";
const NO_DIAGRAM: &str = "No type of diagram is named: begin with one, as in flowchart TD";

/// Colours of a chart's series: each contrasts with the background, and with its neighbours.
const SERIES: &str =
    "#737bd9,#c2571a,#2b8a57,#b03a74,#2f7fb5,#8a6d1f,#6d5a9c,#3f8383,#a04040,#5d6b7a";

/// Returns the settings that all diagrams share. An author may choose a theme and its variables, but not the `secure` settings.
fn settings(kind: &str, has_theme: bool) -> serde_json::Value {
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
        settings["themeVariables"] = json!({ "xyChart": { "plotColorPalette": SERIES } });
    }
    if kind == "gantt" && !has_theme {
        // White is readable on these colours, but not on the theme's violet and red.
        settings["themeVariables"] =
            json!({ "taskBkgColor": "#5f66c4", "critBkgColor": "#d90000" });
    }
    settings
}

fn environment() -> Result<SvgEnvironment, Refused> {
    let identity = MeasurementProfileId::new("arial")
        .and_then(|profile| TextMeasurementProfileIdentity::new(profile, "1"))
        .map_err(|error| Refused::because(error.to_string(), None))?;
    let profile = TextMeasurementProfile::new(identity, measurer());
    let measuring = TextMeasurementPolicy::uniform(profile);
    Ok(SvgEnvironment::deterministic().with_text_measurement_policy(measuring))
}

/// Measures labels by the advances of the font that the page asks for.
fn measurer() -> Arc<dyn TextMeasurer + Send + Sync> {
    DeterministicTextMeasurer::default().with_width_callback(|text, style| {
        let is_bold = style.font_weight.as_deref().is_some_and(text::is_bold);
        text::line_width(text, is_bold, style.font_size)
    })
}

/// Reason why there is no draft.
enum Refused {
    TooComplex,
    /// The source has formulas, which are not drawn.
    Formulas,
    /// The source has nothing that could be drawn.
    Empty,
    Because {
        message: String,
        /// Offset in the text that merman was given, if it is known.
        offset: Option<usize>,
    },
}

impl Refused {
    fn because(message: String, offset: Option<usize>) -> Self {
        Self::Because { message, offset }
    }

    /// The fault is at the first word.
    fn no_diagram() -> Self {
        Self::because(NO_DIAGRAM.to_owned(), Some(0))
    }

    /// Phrases the error for the author, with the position where it is certain.
    fn told(self, source: &str, prepared: &Prepared<'_>) -> DrawError {
        let (message, offset) = match self {
            Self::TooComplex => return DrawError::TooComplex,
            Self::Formulas => ("lacks capability".to_owned(), None),
            Self::Empty => ("invalid semantic model".to_owned(), None),
            Self::Because { message, offset } => (message, offset),
        };
        let told = prepare::told(&message);
        if message == NO_DIAGRAM || message == NOT_DRAWN {
            let word = prepare::kind(source);
            let at = source.find(word).filter(|_| !word.is_empty()).unwrap_or(0);
            return refusal(source, told, Some(at));
        }
        let offset = offset.map(|offset| prepared.source_offset(offset));
        // The end of a source is where the parser stopped, and seldom the fault.
        let offset = match offset.filter(|offset| *offset < source.trim_end().len()) {
            None => first_line_with(&message, source),
            found => found,
        };
        refusal(source, told, offset)
    }
}

/// Returns the offset of the first line at which the source fails for the same reason: later lines are not to blame.
fn first_line_with(message: &str, source: &str) -> Option<usize> {
    if source.len() > SEARCHED {
        return None;
    }
    let reason = prepare::told(message);
    let ends: Vec<usize> = source
        .split_inclusive('\n')
        .scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        })
        .collect();
    let is_refused = |lines: usize| {
        let text = prepare::prepared(&source[..ends[lines - 1]]);
        matches!(first(&text.text), Err(Refused::Because { message, .. }) if prepare::told(&message) == reason)
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
fn refused(error: &RenderError) -> Refused {
    match error {
        RenderError::ResourceLimitExceeded(_) => Refused::TooComplex,
        RenderError::Parse(diagnostic) if diagnostic.is_resource_limit() => Refused::TooComplex,
        RenderError::Parse(diagnostic) => {
            let details = diagnostic.terminal_diagnostic_details();
            match details.code.as_str() {
                "merman.parse.no_diagram_detected" => Refused::no_diagram(),
                "merman.parse.unsupported_diagram" => {
                    Refused::because(NOT_DRAWN.to_owned(), Some(0))
                }
                _ => Refused::because(
                    diagnostic.terminal_safe_message(),
                    details.span.map(|span| span.start),
                ),
            }
        }
        RenderError::NoDiagram => Refused::no_diagram(),
        other => {
            let message = other.to_string();
            if message.contains("capability `math`") {
                Refused::Formulas
            } else if message.contains("no actorOrder") {
                Refused::Empty
            } else {
                Refused::because(message, None)
            }
        }
    }
}

fn refusal(source: &str, message: String, offset: Option<usize>) -> DrawError {
    let place = offset.map(|offset| place_of(source, offset));
    DrawError::Malformed(Malformed { message, place })
}
