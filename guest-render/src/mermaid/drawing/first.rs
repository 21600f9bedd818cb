//! From a diagram's source to a first drawing, by merman: what it is told, and what its refusals become.
//!
//! What comes out is not fit to be served: the rest of this folder makes it so.

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

use super::safe::{self, Unsafe};
use super::text;
use crate::place::place_of;
use crate::{DrawError, Malformed};

/// The id that merman gives the drawing, and its own ids begin with. None of them is served.
const ID: &str = "drawing";

/// How wide the screen is that some diagrams ask for, in CSS pixels.
const SCREEN: f64 = 1280.0;

/// Draws a diagram, as the page's of this `number`.
pub(crate) fn draw(source: &str, number: u32) -> Result<String, DrawError> {
    let drawn = first(source)?;
    safe::rewrite(&drawn, ID, number).map_err(|error| match error {
        Unsafe::TooLarge => DrawError::TooComplex,
        error => refusal(
            source,
            format!("The diagram cannot be shown: {error}"),
            None,
        ),
    })
}

/// The first drawing, with all that merman puts into it.
fn first(source: &str) -> Result<String, DrawError> {
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
    let engine =
        MermaidEngine::new().with_site_config(SourcePresentationConfig::from_value(settings()));
    let drawn = Renderer::new()
        .with_presentation_engine(engine)
        .with_parse_options(ParseOptions::strict())
        .render_svg_data(RenderRequest::svg(source, OperationControl::new(), request));
    match drawn {
        Ok(Some(svg)) => Ok(svg),
        Ok(None) => Err(refusal(source, NO_DIAGRAM.to_owned(), None)),
        Err(error) => Err(refused(source, &error)),
    }
}

const NOT_DRAWN: &str = "This type of diagram is not drawn here: use another, such as flowchart, sequenceDiagram, \
    classDiagram, stateDiagram-v2, erDiagram, gantt, pie, mindmap or timeline";
const NO_DIAGRAM: &str = "No type of diagram is named: begin with one, as in flowchart TD";

/// What all diagrams have in common. An author may choose a theme and its variables, and may not change what is `secure`.
fn settings() -> serde_json::Value {
    json!({
        "theme": "default",
        "look": "classic",
        "layout": "dagre",
        "htmlLabels": true,
        "maxEdges": 5000,
        "maxTextSize": 100_000,
        "flowchart": { "minNodeWidth": 0, "wrappingWidth": 200 },
        "secure": [
            "secure", "securityLevel", "startOnLoad", "maxTextSize", "suppressErrorRendering", "maxEdges",
            "themeCSS", "dompurifyConfig", "htmlLabels", "layout", "fontFamily", "altFontFamily",
        ],
    })
}

fn environment() -> Result<SvgEnvironment, DrawError> {
    let identity = MeasurementProfileId::new("arial")
        .and_then(|profile| TextMeasurementProfileIdentity::new(profile, "1"))
        .map_err(|error| refusal("", error.to_string(), None))?;
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

/// What becomes of an error: too much of something, or a place in the source.
fn refused(source: &str, error: &RenderError) -> DrawError {
    match error {
        RenderError::ResourceLimitExceeded(_) => DrawError::TooComplex,
        RenderError::Parse(diagnostic) if diagnostic.is_resource_limit() => DrawError::TooComplex,
        RenderError::Parse(diagnostic) => {
            let details = diagnostic.terminal_diagnostic_details();
            let message = match details.code.as_str() {
                "merman.parse.no_diagram_detected" => NO_DIAGRAM.to_owned(),
                "merman.parse.unsupported_diagram" => NOT_DRAWN.to_owned(),
                _ => diagnostic.terminal_safe_message(),
            };
            refusal(source, message, details.span.map(|span| span.start))
        }
        RenderError::NoDiagram => refusal(source, NO_DIAGRAM.to_owned(), None),
        other => refusal(source, other.to_string(), None),
    }
}

fn refusal(source: &str, message: String, offset: Option<usize>) -> DrawError {
    let place = offset.map(|offset| place_of(source, offset));
    DrawError::Malformed(Malformed { message, place })
}
