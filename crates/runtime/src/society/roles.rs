//! Changes that the person makes to a role.

use super::Society;
use super::reading::role_view;
use super::writing::{WriteError, check_service};
use crate::handles::Handles;
use polity_decide::inline;
use polity_registry::Snapshot;
use polity_society::id::RoleId;
use polity_society::problem::{Fault, FieldProblem};
use polity_store::{Stopped, events, roles};
use polity_view::{Event, RolePatch, RoleView};
use serde_json::json;

impl Society {
    /// Changes a role. For each agent of the role, the changes take effect at the agent's next model call.
    pub async fn patch_role(&self, id: &RoleId, patch: RolePatch) -> Result<RoleView, WriteError> {
        patch_role(&self.handles, id.clone(), patch).await
    }
}

async fn patch_role(handles: &Handles, id: RoleId, patch: RolePatch) -> Result<RoleView, WriteError> {
    let snapshot = handles.registry.current();
    check_patch(&patch, &snapshot)?;
    let patched = handles.store.write_unless_refused(move |tx| {
        Box::pin(async move {
            let Some(mut role) = roles::get(&mut tx.connection, &id).await? else {
                return Err(Stopped::Refused(WriteError::NoRole(id)));
            };
            let mut fields = Vec::new();
            let mut changed = |name: &str, differs| {
                if differs {
                    fields.push(name.to_owned());
                }
            };
            changed("prompt", put(&mut role.prompt, patch.prompt));
            changed("serviceId", put(&mut role.service, patch.service_id));
            changed("interfaceSpec", put(&mut role.interface_spec, patch.interface_spec.map(Some)));
            changed(
                "requiredCapabilities",
                put(&mut role.required_capabilities, patch.required_capabilities),
            );
            changed("toolGroups", put(&mut role.tool_groups, patch.tool_groups));
            if !fields.is_empty() {
                roles::update(tx, &role).await?;
                let event = Event::RoleChanged {
                    task: role.task.clone(),
                    role: role.id.clone(),
                    name: role.name.to_string(),
                    fields,
                    service: role.service.clone(),
                };
                events::append(tx, &event).await?;
            }
            Ok(role_view(&mut tx.connection, role).await?)
        })
    });
    patched.await
}

/// Replaces a value if a new value is given. Returns whether the value has changed.
fn put<T: PartialEq>(old: &mut T, new: Option<T>) -> bool {
    match new {
        Some(new) if new != *old => {
            *old = new;
            true
        }
        _ => false,
    }
}

fn check_patch(patch: &RolePatch, snapshot: &Snapshot) -> Result<(), WriteError> {
    if patch.prompt.as_ref().is_some_and(|prompt| prompt.trim().is_empty()) {
        return Err(WriteError::Invalid(FieldProblem::new("prompt", Fault::Empty)));
    }
    let texts = json!({"prompt": patch.prompt, "interfaceSpec": patch.interface_spec});
    if inline::holds_bytes(&texts) {
        let rule = "must not contain a file as base64 or hexadecimal digits; send the file with a message";
        return Err(WriteError::invalid("prompt", rule));
    }
    let empty = |names: &Vec<String>| names.iter().any(|name| name.trim().is_empty());
    if patch.required_capabilities.as_ref().is_some_and(empty) {
        return Err(WriteError::Invalid(FieldProblem::new("requiredCapabilities", Fault::Empty)));
    }
    if let Some(spec) = &patch.interface_spec {
        let checked = polity_society::role::InterfaceSpec::parse(&json!(spec));
        if let Some(problem) = checked.err().and_then(|problems| problems.into_iter().next()) {
            return Err(WriteError::Invalid(problem.inside("interfaceSpec")));
        }
    }
    patch.service_id.as_ref().map_or(Ok(()), |id| check_service(id, snapshot))
}
