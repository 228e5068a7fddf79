//! Collects the declarations of the routes. From these declarations, this module builds the router or the OpenAPI 3.1
//! document. The schemas are generated from the types that the handlers accept and return.

use crate::problem::PROBLEM_JSON;
use crate::shared::Shared;
use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use polity_view::{DEFAULT_PAGE, MAX_PAGE, Problem};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The routes. `described` is `None` if the routes are only served, and no OpenAPI document is needed.
pub(crate) struct Routes {
    router: Router<Arc<Shared>>,
    described: Option<Described>,
}

/// The descriptions of the routes.
struct Described {
    paths: Map<String, Value>,
    schemas: SchemaGenerator,
}

/// The HTTP methods that the routes accept.
#[derive(Clone, Copy)]
pub(crate) enum Verb {
    Get,
    Post,
    Patch,
    Delete,
}

/// Who may call a route.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Clients with the token, or with the cookie of a login.
    Known,
    /// Everybody.
    Anybody,
}

/// The description of one route.
pub(crate) struct Operation<'a> {
    schemas: &'a mut SchemaGenerator,
    said: Map<String, Value>,
    parameters: Vec<Value>,
    content: Map<String, Value>,
    answers: Map<String, Value>,
    access: Access,
}

impl Routes {
    /// Returns an empty list of routes. Routes that are added to it get no descriptions: to build the descriptions
    /// takes much longer than to build the router.
    pub(crate) fn to_serve() -> Self {
        Self { router: Router::new(), described: None }
    }

    /// Returns an empty list of routes. Routes that are added to it get descriptions.
    pub(crate) fn to_describe() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        let described = Described { paths: Map::new(), schemas: settings.into_generator() };
        Self { router: Router::new(), described: Some(described) }
    }

    /// Adds a route. `id` names the operation in the OpenAPI document.
    pub(crate) fn add<H, T>(
        &mut self,
        verb: Verb,
        path: &str,
        id: &str,
        handler: H,
        describe: impl FnOnce(Operation<'_>) -> Operation<'_>,
    ) where
        H: Handler<T, Arc<Shared>>,
        T: 'static,
    {
        let (filter, name) = match verb {
            Verb::Get => (MethodFilter::GET, "get"),
            Verb::Post => (MethodFilter::POST, "post"),
            Verb::Patch => (MethodFilter::PATCH, "patch"),
            Verb::Delete => (MethodFilter::DELETE, "delete"),
        };
        let router = std::mem::take(&mut self.router);
        self.router = router.route(path, on(filter, handler));
        let Some(Described { paths, schemas }) = &mut self.described else { return };
        let operation = describe(Operation::new(schemas, id, path)).finish();
        let entry = paths.entry(path).or_insert_with(|| json!({}));
        if let Value::Object(methods) = entry {
            methods.insert(name.to_owned(), operation);
        }
    }

    /// Returns the router.
    pub(crate) fn router(self) -> Router<Arc<Shared>> {
        self.router
    }

    /// Returns the OpenAPI document; `None` if the routes were not described.
    pub(crate) fn document(self) -> Option<Value> {
        let Described { paths, mut schemas } = self.described?;
        let schemas = schemas.take_definitions(true);
        Some(json!({
            "openapi": "3.1.0",
            "info": {
                "title": "polity",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "A society of LLM agents on your machine.",
                "license": {"name": "MIT OR Apache-2.0"},
            },
            "paths": paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": {
                    "token": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "The content of the file `token` in the data directory.",
                    },
                },
            },
            "security": [{"token": []}],
        }))
    }
}

impl<'a> Operation<'a> {
    fn new(schemas: &'a mut SchemaGenerator, id: &str, path: &str) -> Self {
        let mut said = Map::new();
        said.insert("operationId".to_owned(), id.into());
        let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let parameters = names
            .map(|name| {
                let name = name.trim_start_matches('*');
                json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
            })
            .collect();
        Self { schemas, said, parameters, content: Map::new(), answers: Map::new(), access: Access::Known }
    }

    /// Sets the summary: one sentence on what the route does.
    pub(crate) fn summary(mut self, summary: &str) -> Self {
        self.said.insert("summary".to_owned(), summary.into());
        self
    }

    /// Sets who may call the route. Without this call, it is [`Access::Known`].
    pub(crate) fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Declares the fields of a type as query parameters.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        let schema = self.inline::<T>();
        let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let fields = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        for (name, mut schema) in fields {
            let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            if name == "limit" {
                schema =
                    json!({"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": DEFAULT_PAGE});
            }
            let mut parameter = json!({
                "name": name, "in": "query", "required": required.contains(&json!(name)), "schema": schema,
            });
            if let (Some(description), Some(parameter)) = (description, parameter.as_object_mut()) {
                parameter.insert("description".to_owned(), description);
            }
            self.parameters.push(parameter);
        }
        self
    }

    /// Declares an optional header.
    pub(crate) fn header(mut self, name: &str, description: &str, schema: Value) -> Self {
        let parameter = json!({"name": name, "in": "header", "required": false, "description": description, "schema": schema});
        self.parameters.push(parameter);
        self
    }

    /// Declares a JSON body.
    pub(crate) fn takes<T: JsonSchema>(self) -> Self {
        let schema = self.schemas.subschema_for::<T>().to_value();
        self.takes_content("application/json", schema)
    }

    /// Declares a body whose content type is not JSON.
    pub(crate) fn takes_content(mut self, content_type: &str, schema: Value) -> Self {
        self.content.insert(content_type.to_owned(), json!({"schema": schema}));
        self
    }

    /// Declares a JSON response.
    pub(crate) fn gives<T: JsonSchema>(self, status: u16, description: &str) -> Self {
        let schema = self.schemas.subschema_for::<T>().to_value();
        self.gives_content(status, description, "application/json", schema)
    }

    /// Declares a response whose content type is not JSON. Further calls for the same status add further content types.
    pub(crate) fn gives_content(
        mut self,
        status: u16,
        description: &str,
        content_type: &str,
        schema: Value,
    ) -> Self {
        let answer = self.answers.entry(status.to_string());
        let answer = answer.or_insert_with(|| json!({"description": description, "content": {}}));
        if let Some(content) = answer.get_mut("content").and_then(Value::as_object_mut) {
            content.insert(content_type.to_owned(), json!({"schema": schema}));
        }
        self
    }

    /// Declares a stream of frames. Some of its frames contain a `T`, so the document defines `T`.
    pub(crate) fn gives_frames<T: JsonSchema>(self, status: u16, content_type: &str) -> Self {
        self.schemas.subschema_for::<T>();
        self.gives_content(status, "The frames.", content_type, json!({"type": "string"}))
    }

    /// Declares a response without a body.
    pub(crate) fn gives_nothing(mut self, status: u16, description: &str) -> Self {
        self.answers.insert(status.to_string(), json!({"description": description}));
        self
    }

    /// Declares responses with these error statuses.
    pub(crate) fn refuses(self, statuses: &[u16]) -> Self {
        statuses.iter().fold(self, |operation, status| operation.problem(*status))
    }

    fn problem(self, status: u16) -> Self {
        let schema = self.schemas.subschema_for::<Problem>().to_value();
        let description = match status {
            400 => "The request is malformed.",
            401 => "The token is missing or wrong.",
            403 => "The host or the origin is not ours.",
            404 => "Not found.",
            408 => "The body did not arrive in time.",
            409 => "The request conflicts with the current state.",
            413 => "The body is too large.",
            415 => "The content type or the encoding of the body is not supported.",
            416 => "The range is outside the content.",
            422 => "The rules refuse the request.",
            503 => "The data directory is unusable just now, the daemon is busy, or it is shutting down.",
            _ => "A defect of polity.",
        };
        self.gives_content(status, description, PROBLEM_JSON, schema)
    }

    /// Returns the schema of a type itself instead of a reference to it.
    fn inline<T: JsonSchema>(&mut self) -> Schema {
        T::json_schema(self.schemas)
    }

    fn finish(self) -> Value {
        let mut operation = match self.access {
            Access::Known => self.refuses(&[401, 403, 500, 503]),
            Access::Anybody => self,
        };
        if operation.access == Access::Anybody {
            operation.said.insert("security".to_owned(), json!([]));
        }
        if !operation.parameters.is_empty() {
            operation.said.insert("parameters".to_owned(), operation.parameters.into());
        }
        if !operation.content.is_empty() {
            let body = json!({"required": true, "content": operation.content});
            operation.said.insert("requestBody".to_owned(), body);
        }
        operation.answers.sort_keys();
        operation.said.insert("responses".to_owned(), operation.answers.into());
        operation.said.into()
    }
}
