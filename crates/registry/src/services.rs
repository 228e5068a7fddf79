//! The services that `llmservices.json` declares.

mod capabilities;
mod connection;
mod variables;

pub(crate) use connection::base_url;
pub(crate) use variables::unset_variables;

use crate::fields::{self, Fields};
use crate::problem::{Place, Problem, Severity};
use polity_llm::Endpoint;
use polity_society::content::{Capabilities, Capability, Direction};
use polity_society::id::ServiceId;
use polity_society::mime::MimePattern;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroUsize;

/// The name of the file in the configuration directory. Messages about problems in the file use this name, too.
pub(crate) const FILE: &str = "llmservices.json";

/// A model that the society can use, with its declared properties.
#[derive(Clone, Debug)]
#[doc(alias = "LlmServiceConfig")]
pub struct Service {
    /// The id by which roles, fallbacks and settings refer to the service.
    pub id: ServiceId,
    /// The name shown to people. If the file gives no name, this is the id.
    pub name: String,
    /// A free text about what the model is good for; may be empty.
    pub description: String,
    /// Words by which a role can require this service.
    pub capability_tags: Vec<String>,
    /// The capabilities of the model: what it accepts as input, and what it produces as output.
    pub capabilities: Capabilities,
    /// Whether the file declares the capabilities, or polity assumes them.
    pub declared: Declaration,
    /// The server and the model, and how to call them.
    pub endpoint: Endpoint,
    /// Maximum number of requests that all agents together may have at the same time. `None` means no limit.
    pub max_concurrent: Option<NonZeroUsize>,
    /// Maximum number of tokens of a request and its answer together; `None` if unknown.
    pub context_window: Option<u64>,
    /// The service to ask when this service fails. It is always another service of the same catalogue.
    pub fallback: Option<ServiceId>,
    /// The MIME types that the model accepts as files: `type/subtype`, `type/*` or `*/*`, in lower case.
    pub file_types: Vec<MimePattern>,
    /// Maximum size of an image in bytes. This is the size before the image is encoded as base64. `None` if the file
    /// declares no limit.
    pub max_image_bytes: Option<u64>,
    /// Maximum length of the longer side of an image, in pixels; `None` if the file declares no limit.
    pub max_image_edge: Option<u32>,
    /// Maximum total size of the media in a request, in bytes of base64. `None` if the file declares no limit. A value
    /// above `limits.maxRequestBytes` has no effect.
    pub max_request_bytes: Option<u64>,
    /// Whether to remove metadata such as EXIF from images before sending them.
    pub strip_metadata: StripMetadata,
    /// The price of the service's tokens; `None` if the file gives no price. Without a price, polity counts no costs
    /// for this service.
    pub price: Option<Price>,
    /// Fields of the service that polity does not know.
    pub unknown: UnknownFields,
}

/// Whether a service declares its capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declaration {
    /// The `capabilities` of the service are valid and include `output`.
    Declared,
    /// The `capabilities` of the service are valid but lack `output`. Text is assumed as the output.
    InputOnly,
    /// The `capabilities` of the service are missing or invalid. Text is assumed as input and output.
    Assumed,
}

/// Whether polity removes the metadata of images before it sends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StripMetadata {
    /// Remove the metadata.
    Strip,
    /// Keep the metadata.
    Keep,
}

impl From<bool> for StripMetadata {
    fn from(strip: bool) -> Self {
        if strip { Self::Strip } else { Self::Keep }
    }
}

/// The price of a million tokens. The user chooses the currency, but all services must use the same currency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Price of a million tokens of requests.
    pub input: f64,
    /// Price of a million tokens of answers.
    pub output: f64,
}

/// Fields that polity does not know, kept as written.
/// `Debug` shows only their names, because a misspelt `apiKey` may be among them.
#[derive(Clone, Default)]
pub struct UnknownFields(Map<String, Value>);

impl UnknownFields {
    /// Returns the fields with their values, which may be secret.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl fmt::Debug for UnknownFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Service {
    /// Creates a service that has default values and declares no capabilities.
    pub fn new(id: ServiceId, endpoint: Endpoint) -> Self {
        Self {
            name: id.to_string(),
            id,
            description: String::new(),
            capability_tags: Vec::new(),
            capabilities: Capabilities::default(),
            declared: Declaration::Assumed,
            endpoint,
            max_concurrent: None,
            context_window: None,
            fallback: None,
            file_types: vec![MimePattern::Anything],
            max_image_bytes: None,
            max_image_edge: None,
            max_request_bytes: None,
            strip_metadata: StripMetadata::Keep,
            price: None,
            unknown: UnknownFields::default(),
        }
    }

    /// Returns whether the model gets tools. It gets tools, except if the file declares an `output` without
    /// `tool_calling`.
    pub fn tools_allowed(&self) -> bool {
        match self.declared {
            Declaration::Declared => self.capabilities.has(&Capability::TOOL_CALLING, Direction::Output),
            Declaration::InputOnly | Declaration::Assumed => true,
        }
    }
}

/// Parses the text of `llmservices.json`. A missing or empty list gives no services.
///
/// # Errors
///
/// Fails if nothing in the file can be used: the file does not parse, `services` is not a list, or every service in the
/// list is invalid. The error contains all problems.
pub fn parse(text: &str) -> Result<(Vec<Service>, Vec<Problem>), Vec<Problem>> {
    let (declared, problems) = read(text)?;
    Ok((declared.into_iter().map(|declared| declared.service).collect(), problems))
}

/// Returns whether two versions of the file differ only in comments and white space.
pub(crate) fn same(one: Option<&str>, other: Option<&str>) -> bool {
    let says = |text: Option<&str>| text.and_then(|text| fields::parse_object(FILE, text).ok());
    one == other || says(one).is_some_and(|says_one| says(other) == Some(says_one))
}

/// A service and its JSON pointer in the file.
struct Declared {
    pointer: String,
    service: Service,
}

fn read(text: &str) -> Result<(Vec<Declared>, Vec<Problem>), Vec<Problem>> {
    let root = fields::parse_object(FILE, text).map_err(|problem| vec![problem])?;
    let mut problems = Vec::new();
    let mut file = Fields::new(FILE, "", root, &mut problems);
    let listed = file.read("services", "the file is not used", |value| match value {
        Value::Array(items) => Ok(items),
        _ => Err("must be a list"),
    });
    file.finish("it has no effect");
    // Without a list, there are two cases. If the file has no field `services`, there are no services. If the value of
    // the field is not a list, an error was reported already.
    let Some(listed) = listed else {
        let broken = problems.iter().any(|problem| problem.severity == Severity::Error);
        return if broken { Err(problems) } else { Ok((Vec::new(), problems)) };
    };

    let count = listed.len();
    let mut taken = BTreeSet::new();
    let mut services = Vec::with_capacity(count);
    for (index, item) in listed.into_iter().enumerate() {
        let pointer = format!("/services/{index}");
        let Some(service) = read_service(&pointer, item, &taken, &mut problems) else {
            continue;
        };
        taken.insert(service.id.clone());
        services.push(Declared { pointer, service });
    }
    if services.is_empty() && count > 0 {
        let place = Place::Pointer("/services".to_owned());
        let what = "none of the services is valid".to_owned();
        let done = "the file is not used".to_owned();
        problems.push(Problem { file: FILE.to_owned(), place, severity: Severity::Error, what, done });
        return Err(problems);
    }
    for Declared { pointer, service } in &mut services {
        check_fallback(pointer, service, &taken, &mut problems);
    }
    Ok((services, problems))
}

fn read_service(
    pointer: &str,
    item: Value,
    taken: &BTreeSet<ServiceId>,
    problems: &mut Vec<Problem>,
) -> Option<Service> {
    let object = match fields::object(item) {
        Ok(object) => object,
        Err(what) => {
            let place = Place::Pointer(pointer.to_owned());
            let done = "the service is left out".to_owned();
            let (file, what) = (FILE.to_owned(), what.to_owned());
            problems.push(Problem { file, place, severity: Severity::Error, what, done });
            return None;
        }
    };
    let named = object.get("id").and_then(Value::as_str).map(str::trim).filter(|id| !id.is_empty());
    let whose = named.map_or_else(|| "the service".to_owned(), |id| format!("the service {id:?}"));
    let left_out = format!("{whose} is left out");
    let mut fields = Fields::new(FILE, pointer, object, problems);

    // Read all three required fields before returning, so that the problems of all three are reported.
    let id = fields.required("id", &left_out, fields::name).map(ServiceId::new);
    let base_url = fields.required("baseURL", &left_out, connection::base_url);
    let model = fields.required("model", &left_out, fields::name);
    let id = id.filter(|id| {
        let repeated = taken.contains(id);
        if repeated {
            fields.report(Severity::Error, "id", "is already the id of an earlier service", &left_out);
        }
        !repeated
    });
    let (Some(id), Some(base_url), Some(model)) = (id, base_url, model) else {
        return None;
    };

    let mut service = Service::new(id, connection::read_endpoint(&mut fields, base_url, model, &whose));
    service.name = fields.read_or("name", service.name, fields::name);
    service.description = fields.read_or("description", String::new(), fields::text);
    service.capability_tags = fields.read_or("capabilityTags", Vec::new(), fields::texts);
    service.capability_tags.retain(|tag| !tag.is_empty());
    if let Some((capabilities, declared)) = capabilities::read(&mut fields, &whose) {
        service.capabilities = capabilities;
        service.declared = declared;
    }
    service.max_concurrent = fields.read("maxConcurrentRequests", "there is no limit", |value| {
        fields::count(value).and_then(|count: usize| NonZeroUsize::new(count).ok_or("must be above zero"))
    });
    service.context_window = fields.read("contextWindow", "it is treated as unknown", fields::count);
    service.fallback = fields.read("fallback", "there is no fallback", fields::name).map(ServiceId::new);
    service.file_types = fields.read_or("fileTypes", service.file_types, file_types);
    service.max_image_bytes = fields.read("maxImageBytes", "there is no limit", fields::count);
    service.max_image_edge = fields.read("maxImageEdge", "there is no limit", fields::count);
    service.max_request_bytes =
        fields.read("maxRequestBytes", "limits.maxRequestBytes of app.json is used", fields::count);
    service.strip_metadata = fields.read_or("stripMetadata", StripMetadata::Keep, fields::switch);
    service.price = read_price(&mut fields);
    service.unknown = UnknownFields(fields.finish("it is kept and has no effect"));
    Some(service)
}

fn file_types(value: Value) -> Result<Vec<MimePattern>, &'static str> {
    let patterns: Option<Vec<_>> =
        fields::texts(value)?.iter().map(|text| MimePattern::parse(text)).collect();
    patterns.ok_or("must be MIME types such as image/png, image/* or */*")
}

fn read_price(fields: &mut Fields<'_>) -> Option<Price> {
    const DONE: &str = "the price is treated as unknown";
    let mut price = fields.open("price", DONE)?;
    let input = price.required("input", DONE, price_of_a_million);
    let output = price.required("output", DONE, price_of_a_million);
    price.finish("it has no effect");
    Some(Price { input: input?, output: output? })
}

/// Reads a price. A price may be zero; this is the difference from a limit.
fn price_of_a_million(value: Value) -> Result<f64, &'static str> {
    value.as_f64().filter(|price| price.is_finite() && *price >= 0.0).ok_or("must be a number, zero or above")
}

fn check_fallback(
    pointer: &str,
    service: &mut Service,
    taken: &BTreeSet<ServiceId>,
    problems: &mut Vec<Problem>,
) {
    let Some(fallback) = &service.fallback else { return };
    let what = if *fallback == service.id {
        "is the id of the service itself"
    } else if !taken.contains(fallback) {
        "is not the id of a valid service"
    } else {
        return;
    };
    service.fallback = None;
    let place = Place::Pointer(format!("{pointer}/fallback"));
    let done = format!("the service {:?} has no fallback", service.id.as_str());
    let (file, what) = (FILE.to_owned(), what.to_owned());
    problems.push(Problem { file, place, severity: Severity::Error, what, done });
}

#[cfg(test)]
mod tests;
