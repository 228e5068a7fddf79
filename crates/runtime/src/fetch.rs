//! Loads the content of stored artifacts that a request shows: texts, media in a form that the service accepts, and
//! the text of documents that the model cannot read. The results are kept for later requests.

use crate::handles::Handles;
use crate::kept::{Form, Made};
use bytes::Bytes;
use polity_artifacts::index::Stored;
use polity_decide::render::{Fetch, Fetched, Sight, route_of};
use polity_llm::Data;
use polity_media::{
    ChildBounds, DocumentFormat, ExtractError, Fitted, ImageBounds, ImageError, MAX_DECODED_BYTES,
    MAX_DECODED_EDGE, Metadata, fit_image_in_background, run_child,
};
use polity_registry::{Service, StripMetadata};
use polity_routing::{Reason, Route};
use polity_society::id::ArtifactId;
use polity_society::mime::MimeType;
use polity_view::Event;
use std::collections::HashMap;

/// The loaded artifacts of a request.
pub(crate) struct All {
    /// For each artifact, the content that the request shows.
    pub(crate) fetched: HashMap<ArtifactId, Fetched>,
    /// Events to record about artifacts that cannot be read.
    pub(crate) unreadable: Vec<Event>,
}

/// Loads the content that the request shows for each artifact. The model is told if an artifact cannot be read.
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

/// The result of loading one artifact.
enum Got {
    /// The content that is shown.
    Whole(Fetch),
    /// The picture cannot be sent. Contains the reason for the model, and an explanation for the event.
    LeftOut(Reason, String),
}

async fn read(handles: &Handles, stored: &Stored) -> Result<Bytes, String> {
    handles.blobs.read(&stored.blob).await.map_err(|error| error.to_string())
}

/// Loads a file that is sent unchanged.
async fn whole(handles: &Handles, stored: &Stored) -> Result<Fetch, String> {
    if let Some(Made::Medium(mime_type, data)) = handles.kept.get(&stored.blob, Form::Whole) {
        return Ok(Fetch::Medium(mime_type, data));
    }
    let data = Data::from(read(handles, stored).await?);
    let mime_type = stored.artifact.mime_type.clone();
    handles.kept.keep(&stored.blob, Form::Whole, Made::Medium(mime_type.clone(), data.clone()));
    Ok(Fetch::Medium(mime_type, data))
}

/// Returns how large a picture may be. If the service declares no limits, the common limits of servers apply. In
/// addition, the picture must fit into `media_bytes`, the maximum size of all media of a request. The picture is sent
/// in base64, which turns three bytes into four.
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

/// Loads a picture and makes it fit its bounds, as PNG, JPEG, WebP or GIF.
async fn picture(handles: &Handles, stored: &Stored, bounds: ImageBounds) -> Result<Got, String> {
    let form = Form::Fitted(bounds);
    match handles.kept.get(&stored.blob, form) {
        Some(Made::Medium(mime_type, data)) => return Ok(Got::Whole(Fetch::Medium(mime_type, data))),
        Some(Made::LeftOut(reason, why)) => return Ok(Got::LeftOut(reason, why)),
        Some(Made::Text(_) | Made::Nothing) | None => {}
    }
    let bytes = read(handles, stored).await?;
    let declared = stored.artifact.mime_type.clone();
    let (mime_type, data) = match fit_image_in_background(bytes.clone(), declared.to_string(), bounds).await {
        Ok(Fitted::AsItIs(bytes)) => (declared, Data::from(bytes)),
        Ok(Fitted::Changed { bytes, mime_type, what }) => {
            tracing::debug!(artifact = %stored.artifact.id, ?what, "changed a picture to fit its bounds");
            (MimeType::unchecked(mime_type), Data::from(bytes))
        }
        // The server may know a variant of the format that is unknown here, so the picture is sent unchanged.
        Err(ImageError::UnknownVariant { mime_type }) if bytes.len() as u64 <= bounds.max_bytes => {
            (MimeType::unchecked(mime_type), Data::from(bytes))
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

/// Returns the reason why a picture is left out. The model is told this reason.
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

/// Extracts the text of a document. If no text can be extracted, the document is only described, and the request does
/// not fail.
async fn extract(handles: &Handles, stored: &Stored) -> Fetch {
    let Some(program) = &handles.extractor else { return Fetch::Spared };
    let mime_type = stored.artifact.mime_type.as_str();
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
        // The document did not cause these errors, so the next request tries to extract the text again.
        Err(ExtractError::Start(_) | ExtractError::Talk(_) | ExtractError::Stopping) => {
            return Fetch::Spared;
        }
        Err(error) => {
            tracing::debug!(artifact = %stored.artifact.id, %error, "failed to extract the text of a document");
            Made::Nothing
        }
    };
    handles.kept.keep(&stored.blob, Form::Text, made.clone());
    match made {
        Made::Text(text) => Fetch::Extracted(text),
        Made::Nothing | Made::Medium(..) | Made::LeftOut(..) => Fetch::Spared,
    }
}
