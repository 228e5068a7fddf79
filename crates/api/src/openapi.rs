//! Routes with their description: a route is declared once, and both the router and the OpenAPI document (3.1) come of
//! it. Schemas are made from the types that the handlers take and give.

use crate::problem::PROBLEM_JSON;
use crate::shared::Shared;
use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use polity_runtime::view::{DEFAULT_PAGE, MAX_PAGE, Problem};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Routes, and what describes them.
pub(crate) struct Routes {
    router: Router<Arc<Shared>>,
    paths: Map<String, Value>,
    schemas: SchemaGenerator,
}

/// The methods that routes take.
#[derive(Clone, Copy)]
pub(crate) enum Verb {
    Get,
    Post,
    Patch,
}

/// Who may call a route.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Whoever has the token or a session.
    Known,
    /// Whoever reaches us.
    Anybody,
}

/// What is said of one route.
pub(crate) struct Operation<'a> {
    schemas: &'a mut SchemaGenerator,
    said: Map<String, Value>,
    parameters: Vec<Value>,
    content: Map<String, Value>,
    answers: Map<String, Value>,
    access: Access,
}

impl Routes {
    pub(crate) fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self { router: Router::new(), paths: Map::new(), schemas: settings.into_generator() }
    }

    /// Adds a route. Its id is the name of the operation in the document.
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
        };
        let router = std::mem::take(&mut self.router);
        self.router = router.route(path, on(filter, handler));
        let operation = describe(Operation::new(&mut self.schemas, id, path));
        let described = operation.finish();
        let entry = self.paths.entry(path).or_insert_with(|| json!({}));
        if let Value::Object(methods) = entry {
            methods.insert(name.to_owned(), described);
        }
    }

    /// The router, and the document.
    pub(crate) fn finish(mut self) -> (Router<Arc<Shared>>, Value) {
        let schemas = self.schemas.take_definitions(true);
        let document = json!({
            "openapi": "3.1.0",
            "info": {
                "title": "polity",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "A society of LLM agents on your machine.",
                "license": {"name": "MIT OR Apache-2.0"},
            },
            "paths": self.paths,
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
        });
        (self.router, document)
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

    /// Says in one sentence what the route does.
    pub(crate) fn summary(mut self, summary: &str) -> Self {
        self.said.insert("summary".to_owned(), summary.into());
        self
    }

    /// Says who may call it, where that is not whoever has the token.
    pub(crate) fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Takes the fields of a type as parameters of the query.
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

    /// Takes a header that need not be there.
    pub(crate) fn header(mut self, name: &str, description: &str, schema: Value) -> Self {
        let parameter = json!({"name": name, "in": "header", "required": false, "description": description, "schema": schema});
        self.parameters.push(parameter);
        self
    }

    /// Takes a body of JSON.
    pub(crate) fn takes<T: JsonSchema>(self) -> Self {
        let schema = self.schemas.subschema_for::<T>().to_value();
        self.takes_content("application/json", schema)
    }

    /// Takes a body of another kind.
    pub(crate) fn takes_content(mut self, content_type: &str, schema: Value) -> Self {
        self.content.insert(content_type.to_owned(), json!({"schema": schema}));
        self
    }

    /// Gives JSON.
    pub(crate) fn gives<T: JsonSchema>(self, status: u16, description: &str) -> Self {
        let schema = self.schemas.subschema_for::<T>().to_value();
        self.gives_content(status, description, "application/json", schema)
    }

    /// Gives something else; called again for a status that can be of several kinds.
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

    /// Gives a status without a body.
    pub(crate) fn gives_nothing(mut self, status: u16, description: &str) -> Self {
        self.answers.insert(status.to_string(), json!({"description": description}));
        self
    }

    /// Refuses with a problem.
    pub(crate) fn refuses(self, statuses: &[u16]) -> Self {
        statuses.iter().fold(self, |operation, status| operation.problem(*status))
    }

    fn problem(self, status: u16) -> Self {
        let schema = self.schemas.subschema_for::<Problem>().to_value();
        let description = match status {
            400 => "The request cannot be read.",
            401 => "The token is missing or wrong.",
            403 => "The host or the origin is not ours.",
            404 => "There is no such thing.",
            408 => "The body did not come in time.",
            409 => "It does not go with what is there.",
            413 => "The body is too large.",
            415 => "The body is of a type that is not taken.",
            416 => "The range lies outside.",
            422 => "The rules refuse it.",
            503 => "The machine refuses just now, or the daemon ends.",
            _ => "A defect of polity.",
        };
        self.gives_content(status, description, PROBLEM_JSON, schema)
    }

    /// The schema of a type itself, not a reference to it.
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
