//! Bodies of uploads: a raw file, or a form with one, read as their bytes come.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use multer::{Field, Multipart};

use super::UploadError;
use super::spool::{Spool, SpooledBody};
use crate::http::extract::{StreamedBody, body_too_large, invalid_request};
use crate::http::problem::Problem;

/// Media type of a form with files.
const FORM_TYPE: &str = "multipart/form-data";
/// Bytes that a form may have beside its file and its params: boundaries and the headers of its parts.
const FORM_BYTES: u64 = 16 << 10;
/// Most bytes that the form's library keeps until it has found a part's begin: headers of parts have no other bound.
const WAITING_BYTES: u64 = 1 << 20;

/// Bounds of an upload.
#[derive(Clone, Copy, Debug)]
pub(super) struct UploadBounds {
    /// Most bytes of the file.
    pub(super) file: u64,
    /// Most bytes of the params.
    pub(super) params: u64,
}

/// An upload that has arrived.
#[derive(Debug)]
pub(super) struct ReceivedUpload {
    /// The file.
    pub(super) body: SpooledBody,
    /// Name of the file in the form.
    pub(super) name: Option<String>,
    /// Params in the form.
    pub(super) params: Option<String>,
}

/// Whether a body is a form with files.
pub(super) fn is_form(content_type: Option<&str>) -> bool {
    let media_type = content_type.and_then(|it| it.split(';').next());
    media_type.is_some_and(|it| it.trim().eq_ignore_ascii_case(FORM_TYPE))
}

impl UploadBounds {
    /// Refuses a body by its declared length.
    ///
    /// # Errors
    /// `payload_too_large`.
    pub(super) fn check(self, declared: u64, is_form: bool) -> Result<(), Problem> {
        let most = match is_form {
            true => self.file.saturating_add(self.params + FORM_BYTES),
            false => self.file,
        };
        match declared > most {
            true => Err(body_too_large(self.file)),
            false => Ok(()),
        }
    }
}

/// Receives an upload.
///
/// # Errors
/// Those of the transfer, of the form and of the disk.
pub(super) async fn receive(
    body: StreamedBody,
    content_type: Option<&str>,
    spool: Spool,
    bounds: UploadBounds,
) -> Result<ReceivedUpload, UploadError> {
    match content_type.filter(|_| is_form(content_type)) {
        Some(content_type) => receive_form(body, content_type, spool, bounds).await,
        None => receive_raw(body, spool).await,
    }
}

async fn receive_raw(
    mut body: StreamedBody,
    mut spool: Spool,
) -> Result<ReceivedUpload, UploadError> {
    while let Some(bytes) = body.next(spool.bytes_in_memory()).await? {
        spool.write(bytes).await?;
    }
    Ok(ReceivedUpload {
        body: spool.finish().await?,
        name: None,
        params: None,
    })
}

async fn receive_form(
    body: StreamedBody,
    content_type: &str,
    spool: Spool,
    bounds: UploadBounds,
) -> Result<ReceivedUpload, UploadError> {
    let boundary = multer::parse_boundary(content_type)
        .map_err(|_| invalid_request("The Content-Type of the form names no boundary."))?;
    let transfer = Arc::new(Transfer::default());
    let mut form = Multipart::new(parts_of(body, Arc::clone(&transfer)), boundary);
    let mut received = FormParts {
        spool,
        bounds,
        transfer: &transfer,
        file: None,
        params: None,
    };
    loop {
        let field = form.next_field().await;
        match field.map_err(|error| transfer.problem(&error))? {
            Some(field) => received.take(field).await?,
            None => break,
        }
    }
    received.finish().await
}

/// State of a transfer that both its reader and the form know.
#[derive(Debug, Default)]
struct Transfer {
    /// Bytes that were read and are in memory.
    held: AtomicUsize,
    /// Bytes of parts that the form has given.
    taken: AtomicU64,
    /// Problem with which the transfer has ended.
    failed: Mutex<Option<Problem>>,
}

impl Transfer {
    /// Returns the problem of a form that cannot be read: that of the transfer, if it has failed.
    fn problem(&self, error: &multer::Error) -> Problem {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed
            .clone()
            .unwrap_or_else(|| invalid_request(format!("The form cannot be read: {error}.")))
    }

    /// Notes the problem with which the transfer ends.
    fn fail(&self, problem: Problem) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        *failed = Some(problem);
    }

    /// Refuses bytes while too many of those before, of which `given` were read, wait in memory for the begin of a part.
    fn check_waiting(&self, bytes: Option<Bytes>, given: u64) -> Result<Option<Bytes>, Problem> {
        let waiting = given.saturating_sub(self.taken.load(Ordering::Relaxed));
        match waiting > WAITING_BYTES {
            true => Err(invalid_request(
                "The form has too much beside its parts: a part has a name, and nothing stands before the first one.",
            )),
            false => Ok(bytes),
        }
    }
}

/// Reads a body as the form's library takes it.
fn parts_of(
    body: StreamedBody,
    transfer: Arc<Transfer>,
) -> impl Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    let parts = stream::unfold(Some((body, transfer, 0_u64)), |state| async move {
        let (mut body, transfer, given) = state?;
        let next = body.next(transfer.held.load(Ordering::Relaxed)).await;
        match next.and_then(|bytes| transfer.check_waiting(bytes, given)) {
            Ok(Some(bytes)) => {
                let given = given + bytes.len() as u64;
                Some((Ok(bytes), Some((body, transfer, given))))
            }
            Ok(None) => None,
            Err(problem) => {
                let error = std::io::Error::other(problem.detail.clone());
                transfer.fail(problem);
                Some((Err(error), None))
            }
        }
    });
    OneAtATime {
        parts: Box::pin(parts),
        has_given: false,
    }
}

/// Stream that gives one item whenever it is polled: the form's library reads all that is there otherwise, however much that is.
struct OneAtATime<S> {
    parts: Pin<Box<S>>,
    has_given: bool,
}

impl<S: Stream> Stream for OneAtATime<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        if self.has_given {
            self.has_given = false;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let polled = self.parts.as_mut().poll_next(context);
        self.has_given = matches!(polled, Poll::Ready(Some(_)));
        polled
    }
}

/// Parts of a form that have come.
struct FormParts<'t> {
    spool: Spool,
    bounds: UploadBounds,
    transfer: &'t Transfer,
    /// Name of the file, once it has come.
    file: Option<Option<String>>,
    params: Option<String>,
}

impl FormParts<'_> {
    /// Reads the next part.
    async fn take(&mut self, field: Field<'static>) -> Result<(), UploadError> {
        match field.name() {
            Some("file") if self.file.is_none() => self.take_file(field).await,
            Some("params") if self.params.is_none() => self.take_params(field).await,
            _ => Err(invalid_request(
                "The form has a part `file` once, and `params` at most once, and no other part.",
            )
            .into()),
        }
    }

    async fn take_file(&mut self, mut field: Field<'static>) -> Result<(), UploadError> {
        self.file = Some(field.file_name().map(str::to_owned));
        while let Some(bytes) = self.chunk(&mut field).await? {
            if self.spool.bytes() + bytes.len() as u64 > self.bounds.file {
                return Err(body_too_large(self.bounds.file).into());
            }
            self.spool.write(bytes).await?;
            let held = self.spool.bytes_in_memory();
            self.transfer.held.store(held, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn take_params(&mut self, mut field: Field<'static>) -> Result<(), UploadError> {
        let mut params = Vec::new();
        while let Some(bytes) = self.chunk(&mut field).await? {
            params.extend_from_slice(&bytes);
            if params.len() as u64 > self.bounds.params {
                return Err(body_too_large(self.bounds.params).into());
            }
        }
        let params = String::from_utf8(params)
            .map_err(|_| invalid_request("The part `params` of the form is no UTF-8."))?;
        self.params = Some(params);
        Ok(())
    }

    async fn chunk(&self, field: &mut Field<'static>) -> Result<Option<Bytes>, UploadError> {
        let chunk = field.chunk().await;
        let chunk = chunk.map_err(|error| self.transfer.problem(&error))?;
        let bytes = chunk.as_ref().map_or(0, |bytes| bytes.len() as u64);
        self.transfer.taken.fetch_add(bytes, Ordering::Relaxed);
        Ok(chunk)
    }

    async fn finish(self) -> Result<ReceivedUpload, UploadError> {
        let Some(name) = self.file else {
            return Err(invalid_request("The form has no part `file`.").into());
        };
        Ok(ReceivedUpload {
            body: self.spool.finish().await?,
            name,
            params: self.params,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::extract::{FromRequest as _, Request};
    use http::header;

    const BOUNDS: UploadBounds = UploadBounds {
        file: 20,
        params: 10,
    };

    async fn form(parts: &str) -> Result<ReceivedUpload, Problem> {
        let directory = tempfile::tempdir().unwrap();
        let body = parts.replace('\n', "\r\n");
        let mut request = Request::new(Body::from(body.clone()));
        let length = body.len().to_string().parse().unwrap();
        request.headers_mut().insert(header::CONTENT_LENGTH, length);
        let body = StreamedBody::from_request(request, &()).await.unwrap();
        let kind = Some("multipart/form-data; boundary=b");
        let received = receive(body, kind, Spool::new(directory.path()), BOUNDS).await;
        received.map_err(Into::into)
    }

    #[tokio::test]
    async fn a_form_has_one_file() {
        let file =
            "--b\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\n\nhello\n";
        let params = "--b\nContent-Disposition: form-data; name=\"params\"\n\n{}\n";
        for whole in [
            format!("{file}{params}--b--\n"),
            format!("{params}{file}--b--\n"),
        ] {
            let received = form(&whole).await.unwrap();
            assert_eq!(received.name.as_deref(), Some("a.txt"));
            assert_eq!(received.params.as_deref(), Some("{}"));
            assert_eq!(received.body.all().await.unwrap(), "hello");
        }
        let other = "--b\nContent-Disposition: form-data; name=\"x\"\n\n1\n";
        let long = file.replace("hello", &"x".repeat(21));
        for bad in [
            format!("{params}--b--\n"),
            format!("{file}{file}--b--\n"),
            format!("{file}{other}--b--\n"),
            format!("{long}--b--\n"),
            file.to_owned(),
            "nothing".to_owned(),
        ] {
            assert!(form(&bad).await.is_err(), "{bad}");
        }
    }

    #[test]
    fn a_form_may_be_longer_than_its_file() {
        assert!(is_form(Some("Multipart/Form-Data; boundary=x")));
        assert!(!is_form(Some("image/png")) && !is_form(None));
        BOUNDS.check(20, false).unwrap();
        assert!(BOUNDS.check(21, false).is_err());
        BOUNDS.check(21 + FORM_BYTES, true).unwrap();
        assert!(BOUNDS.check(31 + FORM_BYTES, true).is_err());
    }
}
