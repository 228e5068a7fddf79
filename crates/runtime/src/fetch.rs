//! Gets of the stored artifacts what a request will show of them: texts, media made fit for the service, the text of
//! documents that the model does not take. What was made for one request is kept for the next.

use crate::decide::render::{Fetch, Fetched, Sight, route_of};
use crate::handles::Handles;
use crate::kept::{Form, Made};
use bytes::Bytes;
use polity_artifacts::index::Stored;
use polity_llm::Data;
use polity_media::{
    ChildBounds, DocumentFormat, ExtractError, Fitted, ImageBounds, ImageError, MAX_DECODED_BYTES,
    MAX_DECODED_EDGE, Metadata, fit_image_in_background, run_child,
};
use polity_registry::{Service, StripMetadata};
use polity_routing::{Reason, Route};
use polity_society::id::ArtifactId;
use polity_view::Event;
use std::collections::HashMap;

/// What was got of the artifacts of a request.
pub(crate) struct All {
    /// What each is shown as.
    pub(crate) fetched: HashMap<ArtifactId, Fetched>,
    /// What is to be recorded of those that cannot be read.
    pub(crate) unreadable: Vec<Event>,
}

/// Gets what each artifact is shown as. One that cannot be read is told as such.
pub(crate) async fn fetch(handles: &Handles, service: &Service, stored: &[Stored], sight: &Sight<'_>) -> All {
    let mut fetched = HashMap::with_capacity(stored.len());
    let mut unreadable = Vec::new();
    for stored in stored {
        let got = match route_of(&stored.artifact, sight) {
            _ if let Some(damage) = &stored.damage => Err(format!("its row is damaged: {damage}")),
            Route::Text => read(handles, stored).await.map(|bytes| Got::Whole(Fetch::Text(bytes))),
            Route::Image => picture(handles, stored, bounds(service, sight.media_bytes)).await,
            Route::Audio(_) | Route::File => whole(handles, stored).await.map(Got::Whole),
            Route::Describe(_) => Ok(Got::Whole(extract(handles, stored).await)),
        };
        let bytes = match got {
            Ok(Got::Whole(bytes)) => bytes,
            Ok(Got::LeftOut(reason, why)) => {
                let artifact = stored.artifact.id.clone();
                unreadable.push(Event::ArtifactUnreadable { artifact, reason: why });
                Fetch::LeftOut(reason)
            }
            Err(reason) => {
                let artifact = stored.artifact.id.clone();
                unreadable.push(Event::ArtifactUnreadable { artifact, reason });
                Fetch::Failed
            }
        };
        fetched.insert(stored.artifact.id.clone(), Fetched { artifact: stored.artifact.clone(), bytes });
    }
    All { fetched, unreadable }
}

/// What was got of one artifact.
enum Got {
    /// What is shown of it.
    Whole(Fetch),
    /// No picture that can be sent: why, for the model and for those who watch.
    LeftOut(Reason, String),
}

async fn read(handles: &Handles, stored: &Stored) -> Result<Bytes, String> {
    handles.blobs.read(&stored.blob).await.map_err(|error| error.to_string())
}

/// A file that goes as it is.
async fn whole(handles: &Handles, stored: &Stored) -> Result<Fetch, String> {
    if let Some(Made::Medium(mime_type, data)) = handles.kept.get(&stored.blob, Form::Whole) {
        return Ok(Fetch::Medium(mime_type, data));
    }
    let data = Data::from(read(handles, stored).await?);
    let mime_type = stored.artifact.mime_type.clone();
    handles.kept.keep(&stored.blob, Form::Whole, Made::Medium(mime_type.clone(), data.clone()));
    Ok(Fetch::Medium(mime_type, data))
}

/// What the service says a picture may measure; else what servers commonly take. It must fit among the media of a
/// request, too, where three bytes take four.
fn bounds(service: &Service, media_bytes: u64) -> ImageBounds {
    let common = ImageBounds::default();
    ImageBounds {
        max_bytes: service.max_image_bytes.unwrap_or(common.max_bytes).min(media_bytes / 4 * 3),
        max_edge: service.max_image_edge.unwrap_or(common.max_edge),
        metadata: match service.strip_metadata {
            StripMetadata::Strip => Metadata::Strip,
            StripMetadata::Keep => Metadata::Keep,
        },
    }
}

/// A picture within its bounds, as PNG, JPEG, WebP or GIF.
async fn picture(handles: &Handles, stored: &Stored, bounds: ImageBounds) -> Result<Got, String> {
    let form = Form::Fitted(bounds);
    match handles.kept.get(&stored.blob, form) {
        Some(Made::Medium(mime_type, data)) => return Ok(Got::Whole(Fetch::Medium(mime_type, data))),
        Some(Made::LeftOut(reason, why)) => return Ok(Got::LeftOut(reason, why)),
        Some(Made::Text(_) | Made::Nothing) | None => {}
    }
    let bytes = read(handles, stored).await?;
    let declared = stored.artifact.mime_type.clone();
    let (mime_type, data) = match fit_image_in_background(bytes.clone(), declared.clone(), bounds).await {
        Ok(Fitted::AsItIs(bytes)) => (declared, Data::from(bytes)),
        Ok(Fitted::Changed { bytes, mime_type, what }) => {
            tracing::debug!(artifact = %stored.artifact.id, ?what, "a picture was made to fit");
            (mime_type.to_owned(), Data::from(bytes))
        }
        // The server may know more of the format than is known here.
        Err(ImageError::UnknownVariant { mime_type }) if bytes.len() as u64 <= bounds.max_bytes => {
            (mime_type.to_owned(), Data::from(bytes))
        }
        Err(ImageError::Stopping) => return Err(ImageError::Stopping.to_string()),
        Err(error) => {
            let (reason, why) = (reason_of(&error), error.to_string());
            handles.kept.keep(&stored.blob, form, Made::LeftOut(reason.clone(), why.clone()));
            return Ok(Got::LeftOut(reason, why));
        }
    };
    handles.kept.keep(&stored.blob, form, Made::Medium(mime_type.clone(), data.clone()));
    Ok(Got::Whole(Fetch::Medium(mime_type, data)))
}

/// Why a picture is left out.
fn reason_of(error: &ImageError) -> Reason {
    match error {
        ImageError::Unsupported { .. } | ImageError::UnknownVariant { .. } => Reason::NotConvertible,
        ImageError::TooManyPixels(size) => Reason::TooManyPixels {
            width: size.width,
            height: size.height,
            max_bytes: MAX_DECODED_BYTES,
            max_edge: MAX_DECODED_EDGE,
        },
        ImageError::CannotFit { max_bytes } => Reason::CannotFit { limit: *max_bytes },
        ImageError::Damaged(_)
        | ImageError::TooMuchMemory(_)
        | ImageError::Scale(_)
        | ImageError::Encode(_)
        | ImageError::DecoderPanicked
        | ImageError::Stopping => Reason::Damaged,
    }
}

/// The text of a document, where there is a way to get it. That there is none is no failure: the document is described.
async fn extract(handles: &Handles, stored: &Stored) -> Fetch {
    let Some(program) = &handles.extractor else { return Fetch::Spared };
    let mime_type = &stored.artifact.mime_type;
    if DocumentFormat::of(mime_type).is_none() {
        return Fetch::Spared;
    }
    match handles.kept.get(&stored.blob, Form::Text) {
        Some(Made::Text(text)) => return Fetch::Extracted(text),
        Some(Made::Nothing | Made::Medium(..) | Made::LeftOut(..)) => return Fetch::Spared,
        None => {}
    }
    let Ok(bytes) = read(handles, stored).await else { return Fetch::Spared };
    let made = match run_child(program, bytes, mime_type, &ChildBounds::default()).await {
        Ok(extracted) if extracted.text.trim().is_empty() => Made::Nothing,
        Ok(extracted) => Made::Text(extracted.text),
        // These say nothing about the document: the next request tries again.
        Err(ExtractError::Start(_) | ExtractError::Talk(_) | ExtractError::Stopping) => {
            return Fetch::Spared;
        }
        Err(error) => {
            tracing::debug!(artifact = %stored.artifact.id, %error, "no text could be got out of a document");
            Made::Nothing
        }
    };
    handles.kept.keep(&stored.blob, Form::Text, made.clone());
    match made {
        Made::Text(text) => Fetch::Extracted(text),
        Made::Nothing | Made::Medium(..) | Made::LeftOut(..) => Fetch::Spared,
    }
}
