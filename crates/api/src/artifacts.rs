//! `/api/artifacts`: lists, stores and describes artifacts.

mod content;
mod page;
mod range;
mod shown;

use crate::extract::{Named, Wanted};
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use crate::upload::{self, Form};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use polity_runtime::NewArtifact;
use polity_society::id::{ArtifactId, TaskId};
use polity_view::{ArtifactFilter, ArtifactPage, ArtifactUses, ArtifactView};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, json};
use std::sync::Arc;

/// The query parameters that describe a file. If the body of the request is a form, a field of the form overrides the
/// parameter with the same name.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct UploadQuery {
    /// The name of the file.
    filename: Option<String>,
    /// A label, such as `report`.
    #[serde(rename = "type")]
    label: Option<String>,
    /// The task that the file belongs to.
    task: Option<TaskId>,
}

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/artifacts", "listArtifacts", list, |operation| {
        operation
            .summary("Artifacts, newest first.")
            .query::<ArtifactFilter>()
            .gives::<ArtifactPage>(200, "A page of artifacts.")
            .refuses(&[400])
    });
    routes.add(Verb::Post, "/api/artifacts", "putArtifact", put, |operation| {
        let form = json!({
            "type": "object",
            "required": ["file"],
            "properties": {
                "file": {"type": "string", "contentMediaType": "application/octet-stream"},
                "filename": {"type": "string"},
                "type": {"type": "string"},
                "task": {"type": "string"},
            },
        });
        operation
            .summary("Stores a file: as the body, or in the field `file` of a form.")
            .query::<UploadQuery>()
            .takes_content("multipart/form-data", form)
            .takes_content("application/octet-stream", json!({}))
            .gives::<ArtifactView>(201, "The artifact.")
            .refuses(&[400, 404, 408, 413, 422])
    });
    routes.add(Verb::Get, "/api/artifacts/{id}", "getArtifact", get, |operation| {
        operation
            .summary("The description of an artifact, without its bytes.")
            .gives::<ArtifactView>(200, "The artifact.")
            .refuses(&[404])
    });
    routes.add(Verb::Get, "/api/artifacts/{id}/uses", "getUses", uses, |operation| {
        operation
            .summary("Where an artifact was used: messages that attach it, and models that were shown it.")
            .gives::<ArtifactUses>(200, "The uses, newest first.")
            .refuses(&[404])
    });
    content::routes(routes);
    page::routes(routes);
}

fn nothing() -> Problem {
    Problem::not_found("there is no such artifact")
}

/// Parses the id in a path. Anything that is not a valid id is refused before any lookup.
fn id(name: &str) -> Result<ArtifactId, Problem> {
    ArtifactId::from_reference(name).ok_or_else(nothing)
}

async fn list(
    State(shared): State<Arc<Shared>>,
    Wanted(filter): Wanted<ArtifactFilter>,
) -> Result<Json<ArtifactPage>, Problem> {
    Ok(Json(shared.society.artifacts(&filter).await?))
}

async fn get(State(shared): State<Arc<Shared>>, Named(name): Named) -> Result<Json<ArtifactView>, Problem> {
    shared.society.artifact(&id(&name)?).await?.map(Json).ok_or_else(nothing)
}

async fn uses(State(shared): State<Arc<Shared>>, Named(name): Named) -> Result<Json<ArtifactUses>, Problem> {
    shared.society.artifact_uses(&id(&name)?).await?.map(Json).ok_or_else(nothing)
}

async fn put(
    State(shared): State<Arc<Shared>>,
    Wanted(query): Wanted<UploadQuery>,
    request: Request,
) -> Result<(StatusCode, Json<ArtifactView>), Problem> {
    let most = upload::most_bytes(&shared);
    let _place = upload::place(&shared.uploads).await?;
    let (new, task) = if Form::is_in(request.headers()) {
        of_form(upload::form(request, most, "file").await?, query)?
    } else {
        let declared = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let declared = declared.map(str::to_owned);
        let bytes = upload::whole(request, most).await?;
        let UploadQuery { filename, label, task } = query;
        (NewArtifact { bytes, declared_mime: declared, filename, label, meta: Map::new() }, task)
    };
    let stored = shared.society.put_artifact(new, task).await?;
    Ok((StatusCode::CREATED, Json(stored)))
}

/// Takes the file out of a form. The other fields of the form describe the file. If a field is missing, the value
/// from the query is used.
fn of_form(form: Form, mut said: UploadQuery) -> Result<(NewArtifact, Option<TaskId>), Problem> {
    for (name, value) in form.texts {
        match name.as_str() {
            "filename" => said.filename = Some(value),
            "type" => said.label = Some(value),
            "task" => said.task = Some(TaskId::new(value)),
            _ => return Err(Problem::bad_request(format!("there is no field `{name}`"))),
        }
    }
    let mut files = form.files.into_iter();
    let (Some(file), None) = (files.next(), files.next()) else {
        return Err(Problem::bad_request("a form must have exactly one file, in the field `file`"));
    };
    let new = NewArtifact {
        bytes: file.bytes,
        declared_mime: file.content_type,
        filename: said.filename.or(file.filename),
        label: said.label,
        meta: Map::new(),
    };
    Ok((new, said.task))
}
