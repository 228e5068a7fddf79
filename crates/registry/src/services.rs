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
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroUsize;

/// The file's name in the configuration directory, and in problems.
pub(crate) const FILE: &str = "llmservices.json";

/// A model that the society can use, and what is known about it.
#[derive(Clone, Debug)]
#[doc(alias = "LlmServiceConfig")]
pub struct Service {
    /// Its id.
    pub id: ServiceId,
    /// Its name for people; the id where none is given.
    pub name: String,
    /// What it is good for, in words.
    pub description: String,
    /// Words by which it is chosen for a role.
    pub capability_tags: Vec<String>,
    /// What it takes and gives.
    pub capabilities: Capabilities,
    /// Whether the capabilities were declared.
    pub declared: Declaration,
    /// Where and how it is called.
    pub endpoint: Endpoint,
    /// How many requests it takes at a time.
    pub max_concurrent: Option<NonZeroUsize>,
    /// How many tokens it can have in view.
    pub context_window: Option<u64>,
    /// The service that stands in when this one fails; it is in the same catalogue.
    pub fallback: Option<ServiceId>,
    /// The MIME types that it takes as files: `type/subtype`, `type/*` or `*/*`, in lower case.
    pub file_types: Vec<String>,
    /// How many bytes an image may have.
    pub max_image_bytes: Option<u64>,
    /// How many pixels the longer side of an image may have.
    pub max_image_edge: Option<u32>,
    /// How many bytes a request may have.
    pub max_request_bytes: Option<u64>,
    /// Whether images lose their metadata before they are sent.
    pub strip_metadata: StripMetadata,
    /// What it costs.
    pub price: Option<Price>,
    /// Fields that mean nothing here.
    pub unknown: UnknownFields,
}

/// Whether a service says what it can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declaration {
    /// Its `capabilities` are there and valid, `output` among them.
    Declared,
    /// They say what it takes, and nothing about what it gives.
    InputOnly,
    /// They are not; text in and out is assumed.
    Assumed,
}

/// Whether images lose their metadata before they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StripMetadata {
    /// They do.
    Strip,
    /// They are sent as they are.
    Keep,
}

impl From<bool> for StripMetadata {
    fn from(strip: bool) -> Self {
        if strip { Self::Strip } else { Self::Keep }
    }
}

/// What a million tokens cost, in any currency, the same for all services.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// A million tokens of a request.
    pub input: f64,
    /// A million tokens of an answer.
    pub output: f64,
}

/// Fields that mean nothing here, kept as they were written. `Debug` shows their names only, because a misspelt
/// `apiKey` is among them.
#[derive(Clone, Default)]
pub struct UnknownFields(Map<String, Value>);

impl UnknownFields {
    /// The fields.
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
    /// A service with nothing special about it, which declares no capabilities.
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
            file_types: vec!["*/*".to_owned()],
            max_image_bytes: None,
            max_image_edge: None,
            max_request_bytes: None,
            strip_metadata: StripMetadata::Keep,
            price: None,
            unknown: UnknownFields::default(),
        }
    }

    /// Whether the model is given tools: unless it declares an output without `tool_calling`.
    pub fn tools_allowed(&self) -> bool {
        match self.declared {
            Declaration::Declared => self.capabilities.has(&Capability::TOOL_CALLING, Direction::Output),
            Declaration::InputOnly | Declaration::Assumed => true,
        }
    }
}

/// Reads a text of `llmservices.json`. No services are there where the list is absent or empty.
///
/// # Errors
///
/// All problems, where nothing of the file can be taken: it does not parse, or every service in it is invalid.
pub fn parse(text: &str) -> Result<(Vec<Service>, Vec<Problem>), Vec<Problem>> {
    let (declared, problems) = read(text)?;
    Ok((declared.into_iter().map(|declared| declared.service).collect(), problems))
}

/// Whether two texts of the file say the same, comments and white space apart.
pub(crate) fn same(one: Option<&str>, other: Option<&str>) -> bool {
    let says = |text: Option<&str>| text.and_then(|text| fields::parse_object(FILE, text).ok());
    one == other || says(one).is_some_and(|says_one| says(other) == Some(says_one))
}

/// A service and where it stands in the file.
struct Declared {
    pointer: String,
    service: Service,
}

fn read(text: &str) -> Result<(Vec<Declared>, Vec<Problem>), Vec<Problem>> {
    let root = fields::parse_object(FILE, text).map_err(|problem| vec![problem])?;
    let mut problems = Vec::new();
    let mut file = Fields::new(FILE, "", root, &mut problems);
    let listed = file.read("services", "the file is not taken", |value| match value {
        Value::Array(items) => Ok(items),
        _ => Err("must be a list"),
    });
    file.finish("it has no effect");
    // Absent was fine; what is there and no list was reported as an error.
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
        let done = "the file is not taken".to_owned();
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

    // All three are read before any of them makes the service useless, so that all their problems are told at once.
    let id = required(&mut fields, "id", &left_out, fields::name).map(ServiceId::new);
    let base_url = required(&mut fields, "baseURL", &left_out, connection::base_url);
    let model = required(&mut fields, "model", &left_out, fields::name);
    let id = id.filter(|id| {
        let repeated = taken.contains(id);
        if repeated {
            fields.report(Severity::Error, "id", "is used already by a service above", &left_out);
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
    service.context_window = fields.read("contextWindow", "it counts as not known", fields::count);
    service.fallback = fields.read("fallback", "there is no fallback", fields::name).map(ServiceId::new);
    service.file_types = fields.read_or("fileTypes", service.file_types, file_types);
    service.max_image_bytes = fields.read("maxImageBytes", "there is no limit", fields::count);
    service.max_image_edge = fields.read("maxImageEdge", "there is no limit", fields::count);
    service.max_request_bytes = fields.read("maxRequestBytes", "the general limit counts", fields::count);
    service.strip_metadata = fields.read_or("stripMetadata", StripMetadata::Keep, fields::switch);
    service.price = read_price(&mut fields);
    service.unknown = UnknownFields(fields.finish("it is kept and has no effect"));
    Some(service)
}

fn required<T>(
    fields: &mut Fields<'_>,
    field: &str,
    left_out: &str,
    read: impl FnOnce(Value) -> Result<T, &'static str>,
) -> Option<T> {
    let Some(value) = fields.take(field) else {
        let what = match fields.written_like(field) {
            Some(written) => format!("missing (is {written:?} meant to be it?)"),
            None => "missing".to_owned(),
        };
        fields.report(Severity::Error, field, what, left_out);
        return None;
    };
    match read(value) {
        Ok(value) => Some(value),
        Err(what) => {
            fields.report(Severity::Error, field, what, left_out);
            None
        }
    }
}

fn file_types(value: Value) -> Result<Vec<String>, &'static str> {
    let patterns: Vec<_> =
        fields::texts(value)?.into_iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
    let is_token = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    let is_pattern = |pattern: &String| match pattern.split_once('/') {
        Some(("*", "*")) => true,
        Some((family, "*")) => is_token(family),
        Some((family, subtype)) => is_token(family) && is_token(subtype),
        None => false,
    };
    if patterns.iter().all(is_pattern) {
        Ok(patterns)
    } else {
        Err("must be MIME types such as image/png, image/* or */*")
    }
}

fn read_price(fields: &mut Fields<'_>) -> Option<Price> {
    const DONE: &str = "the price counts as not known";
    let mut price = fields.open("price", DONE)?;
    let input = required(&mut price, "input", DONE, price_of_a_million);
    let output = required(&mut price, "output", DONE, price_of_a_million);
    price.finish("it has no effect");
    Some(Price { input: input?, output: output? })
}

/// Unlike a limit, a price may be zero.
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
        "is the service itself"
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
