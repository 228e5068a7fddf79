//! The lead: an agent that root hires. It reads the attachments that its model can read, finds another agent for the
//! other attachments, surveys the workspace if there is one, and reports to root.

use crate::facts;
use crate::inbound::{Form, Inbound, Sender};
use crate::moves::{
    Call, Move, Tool, assign, attachment_line, failure, list_of, marked_part, notices, references,
    said_by_agent,
};
use crate::reading::{CallOutcome, Called, Scene};
use crate::survey::{Destination, Survey};
use crate::words::Words;
use polity_society::id::{AgentId, ArtifactId};
use serde_json::{Value, json};

/// The file name of the report. Its extension makes the artifact Markdown.
const REPORT_NAME: &str = "report.md";

/// Decides what the lead does next.
pub(crate) fn next_move(scene: &Scene<'_>) -> Move {
    let Some(work) = Work::of(scene) else {
        return Move::Say(known(scene));
    };
    match work.findings() {
        Ok(findings) => work.surveyed(&findings).unwrap_or_else(|earlier| earlier),
        Err(earlier) => earlier,
    }
}

/// Returns the facts that the lead knows at this moment, as a text for its parent.
pub(crate) fn known(scene: &Scene<'_>) -> String {
    let words = scene.words();
    let mut said = notices(scene);
    if let Some(work) = Work::of(scene) {
        let told = work.helper().map(|helper| work.told_by(&helper)).unwrap_or_default();
        said.push(work.own_facts());
        said.push(if told.is_empty() { work.unread() } else { told });
    }
    let said = joined(said);
    if said.is_empty() { words.say(&words.common.nothing_known, &[]) } else { said }
}

/// The work that the lead was given.
struct Work<'s, 'a> {
    scene: &'s Scene<'a>,
    words: &'static Words,
    assignment: &'s Inbound<'a>,
    /// A model needs certain capabilities to read the attachments. These are the ones that the lead's model lacks.
    needs: Vec<String>,
}

/// The agent that reads the attachments that the lead cannot read.
struct Helper {
    id: AgentId,
    /// Index in `Scene::steps` of the call with which the lead asked or hired this agent.
    since: usize,
}

impl<'s, 'a> Work<'s, 'a> {
    /// Takes the first message of the parent as the assignment. If there is no such message, takes the first message
    /// that does not come from the system.
    fn of(scene: &'s Scene<'a>) -> Option<Self> {
        let from_parent = scene.heard().find(
            |(_, inbound)| matches!(&inbound.sender, Sender::Agent(id) if scene.parent.as_ref() == Some(id)),
        );
        let from_anybody = || scene.heard().find(|(_, inbound)| inbound.sender != Sender::System);
        let (_, assignment) = from_parent.or_else(from_anybody)?;
        // If the lead has already searched for agents with certain capabilities, these capabilities stay the needs. Do
        // not derive them from the attachments again: a later request may show the attachments in another form, and so
        // lead to other capabilities.
        let asked = scene
            .calls(Tool::FindCapableAgents.name())
            .filter_map(|(_, called)| called.argument(&["capability"]));
        let mut needs: Vec<String> = asked.map(str::to_owned).collect();
        if needs.is_empty() {
            for need in assignment.attachments.iter().filter_map(|attachment| attachment.needs()) {
                if !needs.iter().any(|known| known == need.as_str()) {
                    needs.push(need.to_string());
                }
            }
        }
        Some(Self { scene, words: scene.words(), assignment, needs })
    }

    /// Returns all facts about the attachments. If facts are missing, returns the next move to get them.
    fn findings(&self) -> Result<String, Move> {
        if self.needs.is_empty() {
            return Ok(self.own_facts());
        }
        let helper = self.helper()?;
        let told = self.told_by(&helper);
        if !told.is_empty() {
            return Ok(joined([self.own_facts(), told]));
        }
        if !notices(self.scene).is_empty() {
            return Err(Move::Say(known(self.scene)));
        }
        Err(self.say(self.words.say(&self.words.lead.awaiting_reader, &[("id", helper.id.as_str())])))
    }

    /// Returns the agent that reads for the lead. If there is no such agent yet, returns the next move to get one. The
    /// moves are, in this order: search the contacts, ask the parent for an introduction, and hire an agent if no
    /// fitting contact is known.
    fn helper(&self) -> Result<Helper, Move> {
        let asked = self.sent("collaboration_request");
        if let Some((since, called)) = asked
            && let (CallOutcome::Done(_), Some(id)) = (called.outcome(), called.argument(&["to"]))
        {
            return Ok(Helper { id: AgentId::new(id), since });
        }
        if self.scene.calls(Tool::FindCapableAgents.name()).next().is_none() {
            let find = |need: &String| {
                Tool::FindCapableAgents.with([("capability", json!(need)), ("direction", json!("input"))])
            };
            return Err(Move::Call(self.needs.iter().map(find).collect()));
        }
        if asked.is_none()
            && let Some(id) = self.found()
        {
            return Err(self.ask(&id));
        }
        self.introduction()?;
        // If the lead has hired an agent, that agent is a contact too. Do not ask it, because its first message already
        // contained the work.
        let hired = self.scene.calls(Tool::SpawnAgentWithTask.name()).last();
        if asked.is_none()
            && hired.is_none()
            && let Some(contact) = self.scene.contacts.iter().find(|contact| {
                self.may_help(&contact.id) && self.needs.iter().all(|need| contact.takes(need))
            })
        {
            return Err(self.ask(&contact.id));
        }
        let Some((_, role)) = self.scene.calls(Tool::CreateRole.name()).last() else {
            return Err(call(Tool::CreateRole.with([
                ("name", json!(self.words.lead.role_name.fill(&[]))),
                ("rolePrompt", json!(self.words.say(&self.words.lead.role_prompt, &[]))),
                ("requiredCapabilities", json!(self.needs)),
            ])));
        };
        let role_id = role.gave("id").ok_or_else(|| self.give_up(role))?;
        let Some((since, spawn)) = hired else {
            return Err(self.spawn_reader(role_id));
        };
        let id = spawn.gave("id").ok_or_else(|| self.give_up(spawn))?;
        Ok(Helper { id: AgentId::new(id), since })
    }

    /// Asks the parent once for an introduction, and waits for the answer.
    fn introduction(&self) -> Result<(), Move> {
        let Some(parent) = &self.scene.parent else {
            return Ok(());
        };
        let capabilities = self.needs.join(&self.words.comma);
        let Some((since, request)) = self.sent("introduction_request") else {
            let artifacts = list_of(&self.unread_artifacts(), self.words);
            let values = [("references", artifacts.as_str()), ("capabilities", &capabilities)];
            let payload = json!({
                "message_type": "introduction_request",
                "text": self.words.say(&self.words.lead.introduction, &values),
                "reason": self.words.say(&self.words.lead.introduction_reason, &values),
                "required_capability": self.needs.first(),
            });
            return Err(call(Tool::SendMessage.with([("to", json!(parent)), ("payload", payload)])));
        };
        let answered = self.scene.heard_from(parent, since).next().is_some();
        let notified =
            || self.scene.heard().any(|(at, inbound)| at > since && inbound.sender == Sender::System);
        if matches!(request.outcome(), CallOutcome::Done(_)) && !answered && !notified() {
            let values = [("id", parent.as_str()), ("capabilities", &capabilities)];
            return Err(self.say(self.words.say(&self.words.lead.awaiting_introduction, &values)));
        }
        Ok(())
    }

    /// Returns a contact that is in the search results for every capability in `needs`.
    fn found(&self) -> Option<AgentId> {
        let mut lists =
            self.scene.calls(Tool::FindCapableAgents.name()).map(|(_, called)| match called.outcome() {
                CallOutcome::Done(result) => result.get("agents").map(ids_in).unwrap_or_default(),
                CallOutcome::Refused { .. } | CallOutcome::Missing => Vec::new(),
            });
        let first = lists.next()?;
        let others: Vec<Vec<AgentId>> = lists.collect();
        first.into_iter().find(|id| self.may_help(id) && others.iter().all(|list| list.contains(id)))
    }

    /// Whether the lead may ask this agent to read. The lead must not ask the user, root, the parent that gave the
    /// work, or itself.
    fn may_help(&self, id: &AgentId) -> bool {
        !id.is_user()
            && !id.is_root()
            && self.scene.parent.as_ref() != Some(id)
            && self.scene.me.as_ref() != Some(id)
    }

    /// Finds the first message of this type that the lead sent.
    fn sent(&self, message_type: &str) -> Option<(usize, &'s Called<'a>)> {
        let mut sent = self.scene.calls(Tool::SendMessage.name());
        sent.find(|(_, called)| called.argument(&["payload", "message_type"]) == Some(message_type))
    }

    fn ask(&self, id: &AgentId) -> Move {
        let artifacts = self.unread_artifacts();
        let listed = list_of(&artifacts, self.words);
        let payload = json!({
            "message_type": "collaboration_request",
            "text": self.words.say(&self.words.lead.assignment, &[("references", &listed)]),
            "attachments": references(&artifacts),
        });
        call(Tool::SendMessage.with([("to", json!(id)), ("payload", payload)]))
    }

    fn spawn_reader(&self, role_id: &str) -> Move {
        let lead = &self.words.lead;
        let artifacts = self.unread_artifacts();
        let listed = list_of(&artifacts, self.words);
        let values = [("references", listed.as_str())];
        let constraints: Vec<String> =
            lead.constraints.iter().map(|phrase| self.words.say(phrase, &[])).collect();
        let brief = json!({
            "objective": self.words.say(&lead.objective, &values),
            "constraints": constraints,
            "inputs": self.words.say(&lead.inputs, &values),
            "outputs": self.words.say(&lead.outputs, &[]),
            "completion_criteria": self.words.say(&lead.completion_criteria, &[]),
        });
        call(assign(role_id, &brief, &self.words.say(&lead.assignment, &values), &artifacts))
    }

    /// Returns what the helper has said since the lead asked or hired it.
    fn told_by(&self, helper: &Helper) -> String {
        let said =
            self.scene.heard_from(&helper.id, helper.since).map(|inbound| said_by_agent(inbound, self.words));
        joined(said)
    }

    /// Returns facts about the content that the lead can read itself. This content is the attachments. If there are no
    /// attachments, it is the person's words.
    fn own_facts(&self) -> String {
        if self.assignment.attachments.is_empty() {
            let told = facts::count(&self.prompt().join("\n")).tell(self.words);
            return self.words.say(&self.words.common.prompt, &[("facts", &told)]);
        }
        self.attachment_lines(|form| !matches!(form, Form::Described { .. }))
    }

    /// Returns a line for each attachment that the lead cannot read.
    fn unread(&self) -> String {
        self.attachment_lines(|form| matches!(form, Form::Described { .. }))
    }

    fn attachment_lines(&self, wanted: impl Fn(&Form<'_>) -> bool) -> String {
        let attachments = self.assignment.attachments.iter().filter(|attachment| wanted(&attachment.form));
        joined(attachments.map(|attachment| attachment_line(attachment, self.words)))
    }

    fn unread_artifacts(&self) -> Vec<ArtifactId> {
        let described = |form: &Form<'_>| matches!(form, Form::Described { .. });
        let attachments = self.assignment.attachments.iter().filter(|attachment| described(&attachment.form));
        attachments.filter_map(|attachment| attachment.artifact.clone()).collect()
    }

    /// Returns the person's words, as the parent quoted them.
    fn prompt(&self) -> Vec<&'a str> {
        let lines = self.assignment.lines.iter().filter_map(|line| marked_part(line, self.words));
        let quoted: Vec<&str> = lines.filter_map(|line| self.words.unquoted(line)).collect();
        if quoted.is_empty() { self.assignment.words().to_vec() } else { quoted }
    }

    /// Surveys the workspace, if there is one. Then stores the report. The report becomes a file in the workspace if
    /// possible, and otherwise an artifact.
    fn surveyed(&self, findings: &str) -> Result<Move, Move> {
        let Some(survey) = Survey::of(self.scene) else {
            return Ok(self.report(findings));
        };
        let surveyed = survey.surveyed()?;
        let findings = joined([findings.to_owned(), surveyed.facts]);
        match surveyed.destination {
            Destination::Workspace { taken } => {
                let opening = survey.written(&self.markdown(&findings), &taken).map_err(call)?;
                Ok(Move::Say(joined([opening, findings])))
            }
            Destination::Artifact => Ok(self.report(&findings)),
        }
    }

    /// Stores the report, and then ends the turn with the reference of the report and the facts.
    fn report(&self, findings: &str) -> Move {
        let lead = &self.words.lead;
        let Some((_, stored)) = self.scene.calls(Tool::PutArtifact.name()).next() else {
            return call(Tool::PutArtifact.with([
                ("type", json!("report")),
                ("content", json!(self.markdown(findings))),
                ("meta", json!({"filename": REPORT_NAME})),
            ]));
        };
        let opening = match stored.gave("ref") {
            Some(reference) => self.words.say(&lead.done, &[("reference", reference)]),
            None => {
                let problem = failure(stored, self.words).unwrap_or_default();
                joined([problem, self.words.say(&lead.done_without_report, &[])])
            }
        };
        Move::Say(joined([opening, findings.to_owned()]))
    }

    fn markdown(&self, findings: &str) -> String {
        let block = |sign: &str, lines: &str| {
            self.words
                .marked(lines)
                .lines()
                .map(|line| format!("{sign} {line}"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let (request, facts) = (block(">", &self.prompt().join("\n")), block("-", findings));
        let values = [("mark", self.words.mark.as_str()), ("request", &request), ("facts", &facts)];
        self.words.lead.report.fill(&values)
    }

    /// Ends the turn with a text that describes the failed call, the facts that the lead has, and the attachments that
    /// it cannot read.
    fn give_up(&self, called: &Called<'_>) -> Move {
        let problem = failure(called, self.words).unwrap_or_default();
        Move::Say(joined([problem, self.own_facts(), self.unread()]))
    }

    /// Ends a turn in which the lead waits for another agent. `text` says what the lead waits for. If the system has
    /// sent notices, they come before `text`.
    fn say(&self, text: String) -> Move {
        let mut said = notices(self.scene);
        said.push(text);
        Move::Say(joined(said))
    }
}

fn call(call: Call) -> Move {
    Move::Call(vec![call])
}

fn ids_in(agents: &Value) -> Vec<AgentId> {
    let id = |agent: &Value| agent.get("id").and_then(Value::as_str).map(AgentId::new);
    agents.as_array().into_iter().flatten().filter_map(id).collect()
}

/// Joins the texts with line breaks, and leaves out empty texts.
fn joined(texts: impl IntoIterator<Item = String>) -> String {
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}
