//! Texts that models and people read, as templates. They live in `prompts/<language>/texts.toml`; here are only
//! their keys and what may be filled in, so that a missing or misspelt text is found when the file is loaded.

use std::collections::BTreeMap;

/// Declares the keys, the name of each in `texts.toml`, and its placeholders.
macro_rules! text_keys {
    ($($(#[$doc:meta])* $key:ident = $name:literal [$($placeholder:literal),*];)*) => {
        /// The key of a text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum TextKey { $($(#[$doc])* $key,)* }

        impl TextKey {
            /// Every key.
            pub const ALL: &'static [Self] = &[$(Self::$key,)*];

            /// The name in `texts.toml`: table and key.
            pub fn name(self) -> &'static str {
                match self { $(Self::$key => $name,)* }
            }

            /// What the text may have filled in.
            pub fn placeholders(self) -> &'static [&'static str] {
                match self { $(Self::$key => &[$($placeholder),*],)* }
            }
        }
    };
}

text_keys! {
    /// The first line of a message from an agent.
    MessageFromAgent = "message.from_agent" ["role", "id"];
    /// The first line of a message from the person.
    MessageFromUser = "message.from_user" [];
    /// The first line of a notice of the system.
    MessageFromSystem = "message.from_system" [];
    /// Below a request for a result of a certain form.
    MessageResultSchema = "message.result_schema" ["schema"];
    /// The last line: how to answer.
    MessageReplyHint = "message.reply_hint" ["id"];
    /// The second line of a request: its type, and the id that an answer can name.
    MessageKindRequest = "message.kind_request" ["kind", "id"];
    /// The second line of an answer: which of the reader's requests it answers.
    MessageKindAnswer = "message.kind_answer" ["requests"];
    /// The second line of a text that follows an answer.
    MessageKindSupplement = "message.kind_supplement" ["requests"];
    /// The second line of a report: the request that it is about, if there is one.
    MessageKindReport = "message.kind_report" ["requests"];
    /// The second line of a message to oneself.
    MessageKindNote = "message.kind_note" [];
    /// The second line of what asks for nothing and answers nothing.
    MessageKindInformation = "message.kind_information" [];
    /// A request as other texts name it: its id and its first words.
    MessageQuoted = "message.quoted" ["id", "words"];
    /// Stands before a line of content that looks like a header.
    MessageQuoteMark = "message.quote_mark" [];
    /// How lines of the system begin in every language that a reader may know them in, one a line; `…` stands for anything.
    MessageHeaderForms = "message.header_forms" [];
    /// Who writes for the first time: role, duty, how it came to know the reader, why it writes.
    MessageSelfIntroduction = "message.self_introduction" ["role", "duty", "source"];
    /// The reason that the writer gave for its first message.
    MessageContactReason = "message.contact_reason" ["reason"];
    /// How the writer came to know the reader: by an introduction.
    KnownByIntroduction = "known_by.introduction" ["introducer"];
    /// … by its task brief.
    KnownByPreset = "known_by.preset" [];
    /// … as its parent.
    KnownByParent = "known_by.parent" [];
    /// … as its child.
    KnownByChild = "known_by.child" [];
    /// … because the reader wrote first.
    KnownByFirstMessage = "known_by.first_message" [];
    /// … because the system brought them together.
    KnownBySystem = "known_by.system" [];

    /// The section of the system prompt that holds the brief.
    BriefHeading = "brief.heading" [];
    /// A field of the brief in the system prompt.
    BriefObjective = "brief.objective" ["value"];
    /// The constraints.
    BriefConstraints = "brief.constraints" ["value"];
    /// Said where there are no constraints.
    BriefNoConstraints = "brief.no_constraints" [];
    /// The inputs.
    BriefInputs = "brief.inputs" ["value"];
    /// The outputs.
    BriefOutputs = "brief.outputs" ["value"];
    /// When the work is done.
    BriefCompletionCriteria = "brief.completion_criteria" ["value"];
    /// The collaborators.
    BriefCollaborators = "brief.collaborators" ["value"];
    /// Reference material.
    BriefReferences = "brief.references" ["value"];
    /// The priority.
    BriefPriority = "brief.priority" ["value"];

    /// Stands in the place of the tool rules where the model cannot call tools.
    SystemNoTools = "system.no_tools" [];
    /// Said after a call that the server could not read: the tools, and the form of a call.
    SystemHowToCall = "system.how_to_call" ["tools"];
    /// Said after a second such call.
    SystemNoCall = "system.no_call" [];
    /// The heading of the runtime facts in the system prompt.
    SystemRuntimeHeading = "system.runtime_heading" [];
    /// The heading of the contact list in the system prompt.
    SystemContactsHeading = "system.contacts_heading" [];
    /// The heading of the list of model services, for those who make roles.
    SystemServicesHeading = "system.services_heading" [];
    /// One service in that list.
    SystemService = "system.service" ["id", "input"];
    /// One contact in that list.
    SystemContact = "system.contact" ["id", "role", "input", "output"];
    /// Added to a contact that has ended.
    SystemContactEnded = "system.contact_ended" [];
    /// The interface spec of a contact.
    SystemContactInterface = "system.contact_interface" ["spec"];
    /// How full the context window is.
    ContextStatus = "context.status" ["used", "window", "percent"];
    /// What to do when it fills up.
    ContextFilling = "context.filling" [];
    /// What to do when it is nearly full.
    ContextNearlyFull = "context.nearly_full" [];
    /// Has a model sum up a transcript; names how long the summary may be, in tokens.
    ContextSumUp = "context.sum_up" ["tokens"];
    /// Stands before the end of a transcript where no model has summed it up.
    ContextNotSummedUp = "context.not_summed_up" [];
    /// Stands for the part of a history that was summed up.
    SystemSummary = "system.summary" ["summary"];
    /// What the person is called where a role name is shown.
    SystemUserRole = "system.user_role" [];
    /// What root is called where a role name is shown.
    SystemRootRole = "system.root_role" [];

    /// Names an artifact that was given with a message; stands before the medium or the text itself.
    AttachmentLabel = "attachment.label" ["filename", "reference"];
    /// Names an artifact that a tool call fetched; stands before the medium.
    ToolMediaLabel = "attachment.tool_media_label" ["filename", "reference", "call"];
    /// The first line of the block that stands for an attachment that is not shown.
    AttachmentHeading = "attachment.heading" [];
    /// A line of that block: what it is.
    AttachmentType = "attachment.type" ["kind"];
    /// … the name of the file.
    AttachmentFilename = "attachment.filename" ["filename"];
    /// … the reference.
    AttachmentReference = "attachment.reference" ["reference"];
    /// … the size.
    AttachmentSize = "attachment.size" ["size"];
    /// … the MIME type.
    AttachmentMimeType = "attachment.mime_type" ["mime_type"];
    /// The model cannot take this.
    AttachmentUnsupported = "attachment.unsupported" [];
    /// Who could: an agent with that capability.
    AttachmentForward = "attachment.forward" ["kind", "capability"];
    /// Agents that the reader can forward it to.
    AttachmentSuggestion = "attachment.suggestion" ["agents"];
    /// Said where the reader knows no such agent, with how to get one.
    AttachmentNoSuggestion = "attachment.no_suggestion" ["capability", "name"];
    /// The server has refused this.
    AttachmentRefused = "attachment.refused" [];
    /// Said where an agent on this service could read it.
    AttachmentHireOn = "attachment.hire_on" ["kind", "service"];
    /// Said where no other service takes it.
    AttachmentNobody = "attachment.nobody" ["kind", "capability", "name"];
    /// The store could not give the bytes.
    AttachmentReadFailed = "attachment.read_failed" [];
    /// One line in place of an old medium that no longer fits into a request.
    AttachmentOld = "attachment.old" ["filename", "reference", "type", "size", "limit"];
    /// One line in place of a medium whose message has more media than fit into a request.
    AttachmentTogether = "attachment.together" ["filename", "reference", "type", "size", "limit"];
    /// Follows text that was cut: how much was shown, and how to read on.
    AttachmentTextCut = "attachment.text_cut" ["filename", "reference", "shown", "total", "offset"];
    /// Stands before the text that was got out of a document.
    AttachmentExtracted = "attachment.extracted" ["filename"];
    /// What people call each kind of content: text.
    KindText = "attachment.kind_text" [];
    /// … a picture.
    KindImage = "attachment.kind_image" [];
    /// … sound.
    KindAudio = "attachment.kind_audio" [];
    /// … video.
    KindVideo = "attachment.kind_video" [];
    /// … a document.
    KindDocument = "attachment.kind_document" [];
    /// … any other file.
    KindOther = "attachment.kind_other" [];
    /// What people call each capability that reads a kind of content: text.
    CapabilityText = "attachment.capability_text" [];
    /// … pictures.
    CapabilityVision = "attachment.capability_vision" [];
    /// … sound.
    CapabilityAudio = "attachment.capability_audio" [];
    /// … video.
    CapabilityVideo = "attachment.capability_video" [];
    /// … files.
    CapabilityFile = "attachment.capability_file" [];

    /// Stands for an artifact that is not shown.
    Unreadable = "unreadable.artifact" ["filename", "reference", "type", "size", "advice"];
    /// Its advice where another agent could read it.
    UnreadableHire = "unreadable.hire" [];
    /// … the beginning of other advice: the model cannot read this.
    UnreadableUnsupported = "unreadable.unsupported" [];
    /// No model gets a file: it is more than the media of one request may be.
    LeftOutTooLarge = "left_out.too_large" ["encoded", "limit"];
    /// … a picture: it has more pixels than are decoded.
    LeftOutPixels = "left_out.pixels" ["width", "height", "limit", "edge"];
    /// … a picture: it cannot be made to fit.
    LeftOutCannotFit = "left_out.cannot_fit" ["limit"];
    /// … a picture: its format cannot be converted.
    LeftOutFormat = "left_out.format" [];
    /// … a picture: it cannot be decoded.
    LeftOutDamaged = "left_out.damaged" [];

    /// With the result of `create_role`: what the role requires and its service has not.
    RoleUnmet = "role.unmet" ["service", "unmet"];

    /// Stands for an artifact whose bytes the store could not give.
    FailureFile = "failure.file" ["filename"];
    /// Says that there is no such artifact.
    FailureArtifactNotFound = "failure.artifact_not_found" [];

    /// Advice with `unknown_contact`.
    RefusalUnknownContact = "refusal.unknown_contact" ["id"];
    /// … with `ambiguous_name`.
    RefusalAmbiguousName = "refusal.ambiguous_name" ["name"];
    /// … with `invalid_task_brief`.
    RefusalInvalidTaskBrief = "refusal.invalid_task_brief" [];
    /// … with `invalid_message`.
    RefusalInvalidMessage = "refusal.invalid_message" [];
    /// … with `result_does_not_fit`.
    RefusalResultDoesNotFit = "refusal.result_does_not_fit" [];
    /// … with `invalid_arguments`.
    RefusalInvalidArguments = "refusal.invalid_arguments" [];
    /// … with `unknown_tool`.
    RefusalUnknownTool = "refusal.unknown_tool" ["tool"];
    /// … with `not_child_role`.
    RefusalNotChildRole = "refusal.not_child_role" ["id"];
    /// … with `not_descendant`.
    RefusalNotDescendant = "refusal.not_descendant" ["id"];
    /// … with `artifact_not_found`.
    RefusalArtifactNotFound = "refusal.artifact_not_found" [];
    /// … with `agent_terminated`.
    RefusalAgentTerminated = "refusal.agent_terminated" ["id"];
    /// … with `limit_reached`.
    RefusalLimitReached = "refusal.limit_reached" ["limit", "value"];
    /// … with `mailbox_full`.
    RefusalMailboxFull = "refusal.mailbox_full" ["id", "limit"];
    /// … with `outcome_unknown`.
    RefusalOutcomeUnknown = "refusal.outcome_unknown" ["tool"];
    /// … with `tool_failed`.
    RefusalToolFailed = "refusal.tool_failed" ["tool", "reason"];

    /// To the sender: the message could not be delivered because its receiver has ended.
    NoticeBounced = "notice.bounced" ["id", "message"];
    /// An agent was parked.
    NoticeParked = "notice.parked" ["id", "role", "reason"];
    /// To the sender of a request: the person stopped its receiver.
    NoticeStopped = "notice.stopped" ["id", "message"];
    /// The reader owes somebody an answer.
    NoticeReminder = "notice.reminder" ["id", "requests"];
    /// … it wrote something that they never got.
    NoticeReminderNote = "notice.reminder_note" ["id", "text"];
    /// … it stored something for them without naming it.
    NoticeReminderArtifacts = "notice.reminder_artifacts" ["id", "refs"];
    /// An agent gave no answer although it was reminded.
    NoticeUnanswered = "notice.unanswered" ["id", "requests"];
    /// An agent made more for the reader than it delivered.
    NoticeLeftover = "notice.leftover" ["id"];
    /// … what it wrote.
    NoticeMadeText = "notice.made_text" ["text"];
    /// … what it stored.
    NoticeMadeArtifacts = "notice.made_artifacts" ["refs"];
    /// Agents wait for each other.
    NoticeDeadlock = "notice.deadlock" ["ids"];
    /// Two agents write to each other without end.
    NoticePairLimit = "notice.pair_limit" ["id", "limit"];
    /// To the sender of a request: its receiver failed while working on it.
    NoticeReceiverFailed = "notice.receiver_failed" ["id", "message", "reason"];
    /// To the parent, or the person: an agent's model call failed for good.
    NoticeAgentFailed = "notice.agent_failed" ["id", "role", "service", "reason"];
    /// To root: the task is idle and the person has heard nothing.
    NoticeNudge = "notice.nudge" [];
    /// To an agent whose turn ends with children hired but never written to.
    NoticeUnwrittenChildren = "notice.unwritten_children" ["ids"];
    /// To an agent whose turn reached `maxToolRounds`: sum up now.
    NoticeSumUp = "notice.sum_up" ["limit"];
    /// A call is repeated with the same result.
    NoticeRepetition = "notice.repetition" ["tool", "times"];
    /// To an agent whose answer does not fit the schema that was asked for.
    NoticeResultDoesNotFit = "notice.result_does_not_fit" ["errors"];
    /// To an agent: a turn of its own failed before, and its messages went unanswered.
    NoticeTurnFailed = "notice.turn_failed" ["reason"];
    /// To the person: a limit stopped the task.
    NoticeLimit = "notice.limit" ["limit", "value"];
    /// What one branch has spent.
    NoticeLimitBranch = "notice.limit_branch" ["id", "calls", "tokens"];
    /// What one branch has spent, where its services have prices.
    NoticeLimitBranchCost = "notice.limit_branch_cost" ["id", "calls", "tokens", "cost"];
    /// To an agent that ends: why.
    NoticeTerminated = "notice.terminated" ["id", "reason"];
}

/// A text with `{placeholders}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(String);

impl Template {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text with its placeholders.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Puts the values in. What is put in is not looked at again, so a value that contains `{id}` stays as it is;
    /// a name in braces that has no value stays too.
    pub fn fill(&self, values: &[(&str, &str)]) -> String {
        let mut filled = String::with_capacity(self.0.len());
        let mut rest = self.0.as_str();
        while let Some(open) = rest.find('{') {
            let (before, from_brace) = rest.split_at(open);
            filled.push_str(before);
            let value = from_brace.find('}').and_then(|close| {
                let name = &from_brace[1..close];
                let (_, value) = values.iter().find(|(key, _)| *key == name)?;
                Some((close, *value))
            });
            match value {
                Some((close, value)) => {
                    filled.push_str(value);
                    rest = &from_brace[close + 1..];
                }
                None => {
                    filled.push('{');
                    rest = &from_brace[1..];
                }
            }
        }
        filled.push_str(rest);
        filled
    }

    /// The names in braces.
    pub fn placeholders(&self) -> Vec<&str> {
        let is_name =
            |name: &&str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let pieces = self.0.split('{').skip(1);
        pieces.filter_map(|piece| piece.split_once('}').map(|(name, _)| name)).filter(is_name).collect()
    }
}

/// What is wrong with a file of texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextProblem {
    /// A key that no text has.
    #[error("there is no text named `{0}`")]
    UnknownKey(String),
    /// A text that is needed and not there.
    #[error("the text `{0}` is missing")]
    Missing(&'static str),
    /// A placeholder that is never filled in.
    #[error("the text `{key}` has a placeholder `{{{placeholder}}}`, which is not one of its own")]
    UnknownPlaceholder {
        /// The text.
        key: &'static str,
        /// The placeholder.
        placeholder: String,
    },
}

/// All texts of one language.
#[derive(Clone, Debug)]
pub struct Texts {
    templates: Vec<Template>,
    type_names: BTreeMap<String, String>,
}

impl Texts {
    /// Builds the texts from what a file holds: `named` by the names of the keys, `type_names` by MIME type.
    /// What is missing or wrong is taken from `fallback`, and reported.
    pub fn build(
        mut named: BTreeMap<String, String>,
        type_names: BTreeMap<String, String>,
        fallback: Option<&Self>,
    ) -> (Self, Vec<TextProblem>) {
        let mut problems = Vec::new();
        let mut templates = Vec::with_capacity(TextKey::ALL.len());
        for &key in TextKey::ALL {
            let given = named.remove(key.name()).map(Template::new);
            if given.is_none() && fallback.is_none() {
                problems.push(TextProblem::Missing(key.name()));
            }
            let usable = given.filter(|template| {
                let unknown =
                    template.placeholders().into_iter().find(|name| !key.placeholders().contains(name));
                if let Some(placeholder) = unknown {
                    let placeholder = placeholder.to_owned();
                    problems.push(TextProblem::UnknownPlaceholder { key: key.name(), placeholder });
                }
                unknown.is_none()
            });
            let otherwise =
                || fallback.map_or_else(|| Template::new(key.name()), |texts| texts.template(key).clone());
            templates.push(usable.unwrap_or_else(otherwise));
        }
        problems.extend(named.into_keys().map(TextProblem::UnknownKey));
        let mut all_type_names = fallback.map(|texts| texts.type_names.clone()).unwrap_or_default();
        all_type_names.extend(type_names);
        (Self { templates, type_names: all_type_names }, problems)
    }

    /// The template of a key.
    pub fn template(&self, key: TextKey) -> &Template {
        // Cannot fail: `build` makes one template per key, in the order of the keys.
        &self.templates[key as usize]
    }

    /// The text of a key that has nothing to fill in.
    pub fn get(&self, key: TextKey) -> &str {
        self.template(key).as_str()
    }

    /// The text of a key, filled in.
    pub fn fill(&self, key: TextKey, values: &[(&str, &str)]) -> String {
        self.template(key).fill(values)
    }

    /// What people call a MIME type, or the type itself where they have no word for it.
    pub fn type_name<'a>(&'a self, mime_type: &'a str) -> &'a str {
        self.type_names.get(mime_type).map_or(mime_type, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filling_in() {
        let check = |template: &str, expect: &str| {
            let filled = Template::new(template).fill(&[("id", "a-1"), ("role", "{id} 读者")]);
            assert_eq!(filled, expect);
        };
        check("【来自 {role}（{id}）的消息】", "【来自 {id} 读者（a-1）的消息】");
        check("{unknown} {id", "{unknown} {id");
        check("{{id}}", "{a-1}");
        check("", "");
    }

    #[test]
    fn problems_are_collected_and_the_fallback_stands_in() {
        let name = TextKey::MessageFromUser.name().to_owned();
        let with = |text: &str| BTreeMap::from([(name.clone(), text.to_owned())]);
        let (base, problems) = Texts::build(with("user says"), BTreeMap::new(), None);
        assert_eq!(problems.len(), TextKey::ALL.len() - 1);
        let mut named = with("{nobody} says");
        named.insert("message.typo".into(), String::new());
        let (texts, problems) = Texts::build(named, BTreeMap::new(), Some(&base));
        assert_eq!(texts.get(TextKey::MessageFromUser), "user says");
        assert_eq!(problems.len(), 2, "{problems:?}");
    }
}
