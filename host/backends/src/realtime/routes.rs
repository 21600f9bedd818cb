//! The routes of rooms: the upgrade for visitors, the list and sending for owners.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use tracing::Instrument;

use super::page::SocketPage;
use super::requests::{SendMessage, room_id};
use super::scope::AuthorizedRooms;
use super::views::{RoomList, SentView};
use super::{Realtime, RoomError, operations, socket};
use crate::access::{Editor, Viewer};
use crate::backends::{BackendError, Backends};
use crate::config::Config;
use crate::deployments::serving::PageService;
use crate::deployments::serving::request_log::LogNote;
use crate::http::context::HttpRequestContext;
use crate::http::extract::{UnparsedQuery, UnreadBody, invalid_request};
use crate::http::origin;
use crate::http::problem::{Problem, ProblemCode};
use crate::http::websocket::UpgradeRequest;
use crate::visitors::Visitors;

#[derive(Clone, Debug)]
pub struct RoomServices {
    pub realtime: Arc<Realtime>,
    pub backends: Arc<Backends>,
    /// Pages that sockets are opened from.
    pub serving: Arc<PageService>,
    /// Visitors who are somebody.
    pub visitors: Arc<Visitors>,
    pub config: Arc<Config>,
}

/// Room that a path names.
#[derive(Debug, Deserialize)]
pub struct RoomPath {
    room: String,
}

/// Join a room
///
/// A WebSocket. The server says `svc:welcome` first; then each text frame `{"v":1,"type":…,"data":…}` goes to every other member of
/// the room as `{"v":1,"type","data","sender","room","ts","seq"}`, and `svc:join`, `svc:leave` and `svc:presence` say who is there. A frame that
/// breaks a rule is answered `svc:error`. Close codes: 1001 (the server stops, or what the room belongs to has ended), 1003 (a binary
/// frame), 1007 (not UTF-8), 1008 (too many messages for too long, the page was disabled, or
/// the visitor whom `identify` shows is not signed in any more), 1009 (a frame above the limit),
/// 1012 (another server may answer: connect again), 1013 (the client reads too slowly: try again later).
#[utoipa::path(
    operation_id = "join_room",
    get, path = "/{slug}/ws", tag = "visitors",
    params(
        ("slug" = String, Path, description = "A project's frontend, whose backend has realtime on."),
        ("room" = String, Query, pattern = "^[A-Za-z0-9][A-Za-z0-9._~-]{0,63}$", description = "Any name: 1 to 64 characters of A-Z, a-z, 0-9 and `._~-`, the first a letter or a digit."),
        ("identify" = Option<bool>, Query, description = "Whether the others are told who this visitor is, if they are signed in: `user` with `id`, `name` and `picture`. An extension."),
        ("Upgrade" = String, Header, description = "`websocket`; a browser's `Origin` must be the page's own.")
    ),
    responses((status = 101, description = "The socket is open.")),
    extensions(("x-problems" = json!("invalid_request invalid_room origin_refused disabled not_found rate_limited capacity_reached")))
)]
pub async fn join(
    State(rooms): State<RoomServices>,
    context: HttpRequestContext,
    Path(slug): Path<String>,
    mut request: Request,
) -> Result<Response, Problem> {
    let ends = rooms.realtime.room_close_count();
    let page = rooms.serving.page_on_host(&context.host, &slug).await?;
    let backend = page.backend.filter(|_| page.is_frontend());
    let backend = backend.ok_or(BackendError::NotFound)?;
    if !rooms.backends.is_realtime(backend).await? {
        return Err(RoomError::Closed.into());
    }
    let headers = request.headers();
    if !origin::is_same_origin(&rooms.config.scheme, &context.authority, headers) {
        return Err(Problem::new(
            ProblemCode::OriginRefused,
            "The socket was opened from a page of another origin. Open it from the page itself.",
        ));
    }
    let room = room_of(request.uri().query())?;
    let identify = wants_identity(request.uri().query())?;
    let cookies = identify.then(|| request.headers().clone());
    let upgrade = UpgradeRequest::from_request(&mut request)?;
    let client = context.client.bucket();
    let from = SocketPage::on_host(&context.host, &slug, &page);
    let ticket = rooms.realtime.admit(backend, client, &room, from)?;
    // From now on the ticket is closed with the backend; this finds a backend that ended before.
    if rooms.realtime.room_close_count() != ends && !rooms.backends.is_realtime(backend).await? {
        return Err(RoomError::Closed.into());
    }
    // All members of a room are at the node that has the database. A database that goes from now on takes the ticket along.
    rooms.backends.claim(backend).await?;
    let session = match cookies {
        Some(headers) => {
            rooms
                .visitors
                .caller_session(&context.host, &page, &headers)
                .await?
        }
        None => None,
    };
    let client = rooms.realtime.new_client();
    let client = client.map_err(|error| Problem::internal(&error))?;
    let id = Arc::new(client.with_visitor(session.as_deref()));
    let span =
        tracing::debug_span!("socket", request = %context.request_id, slug, room, client = &**id);
    let (mut response, accepted) = upgrade.accept();
    let user_id = session.as_ref().map(|session| session.visitor.to_string());
    let sign_in = session.map(|session| (Arc::clone(&rooms.realtime.identified), session));
    let place = (ticket, page.activity.clone());
    tokio::spawn(socket::serve(accepted, place, id, sign_in).instrument(span));
    response.extensions_mut().insert(LogNote {
        user_id,
        ..LogNote::default()
    });
    Ok(response)
}

/// Returns the room id of a query string, which must have exactly one.
fn room_of(query: Option<&str>) -> Result<String, Problem> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let mut named = pairs.filter(|(name, _)| name == "room");
    match (named.next(), named.next()) {
        (Some((_, room)), None) => Ok(room_id(&room)?.to_owned()),
        _ => Err(Problem::new(
            ProblemCode::InvalidRoom,
            "Name one room in the query: `?room=` and its id.",
        )),
    }
}

/// Whether the query string requests that the visitor is shown to the others.
fn wants_identity(query: Option<&str>) -> Result<bool, Problem> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let mut said = pairs.filter(|(name, _)| name == "identify");
    match (said.next().as_ref().map(|(_, value)| &**value), said.next()) {
        (None | Some("false"), None) => Ok(false),
        (Some("true"), None) => Ok(true),
        _ => Err(invalid_request(
            "`identify` must be `true` or `false`, once.",
        )),
    }
}

/// List the rooms
///
/// An extension. Those that somebody is in.
#[utoipa::path(
    operation_id = "list_rooms",
    get, path = "/api/v1/projects/{id}/backend/rooms", tag = "backend",
    params(("id" = String, Path, description = "The project.")),
    responses((status = 200, description = "The rooms.", body = RoomList)),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn list(
    State(realtime): State<Arc<Realtime>>,
    at: AuthorizedRooms<Viewer>,
    query: UnparsedQuery,
) -> Result<Json<RoomList>, Problem> {
    let rooms = operations::list(realtime, at).await?;
    query.none()?;
    Ok(Json(rooms))
}

/// Send a message into a room
///
/// An extension. Every member gets it, with `"owner"` as its `sender`. Nothing is kept: in a room that nobody is in it is lost.
#[utoipa::path(
    operation_id = "send_to_room",
    post, path = "/api/v1/projects/{id}/backend/rooms/{room}/messages", tag = "backend",
    params(
        ("id" = String, Path, description = "The project."),
        ("room" = String, Path, pattern = "^[A-Za-z0-9][A-Za-z0-9._~-]{0,63}$", description = "The room's id.")
    ),
    request_body = SendMessage,
    responses((status = 202, description = "On its way to everybody in the room.", body = SentView)),
    extensions(("x-problems" = json!("owner body forbidden not_found invalid_room"))),
    security(("bearer" = []))
)]
pub async fn send(
    State(rooms): State<RoomServices>,
    at: AuthorizedRooms<Editor>,
    Path(path): Path<RoomPath>,
    body: UnreadBody,
) -> Result<(StatusCode, Json<SentView>), Problem> {
    let body = body.with_limit(rooms.config.limits.frame_bytes)?;
    let input = body.json::<SendMessage>().await?.value;
    let sent = operations::send(rooms.realtime, at, (path.room, input)).await?;
    Ok((StatusCode::ACCEPTED, Json(sent)))
}
