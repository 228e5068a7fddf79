//! The keys of all texts, each with its name in `texts.toml` and its placeholders.

/// Declares the keys. Each key has a name in `texts.toml` and placeholders.
macro_rules! text_keys {
    ($($(#[$doc:meta])* $key:ident = $name:literal [$($placeholder:literal),*];)*) => {
        /// The key of a text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum TextKey { $($(#[$doc])* $key,)* }

        impl TextKey {
            /// All keys.
            pub const ALL: &'static [Self] = &[$(Self::$key,)*];

            /// Returns the name in `texts.toml`: table and key.
            pub fn name(self) -> &'static str {
                match self { $(Self::$key => $name,)* }
            }

            /// Returns the placeholders that the text may contain.
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
    /// Asks the reader for an answer that fits a JSON Schema.
    MessageResultSchema = "message.result_schema" ["schema"];
    /// The last line of a request: how to answer.
    MessageReplyHint = "message.reply_hint" ["id"];
    /// The second line of a request: its type, and the id that an answer can name.
    MessageKindRequest = "message.kind_request" ["kind", "id"];
    /// The second line of an answer: which of the reader's requests it answers.
    MessageKindAnswer = "message.kind_answer" ["requests"];
    /// The second line of a supplement: names the reader's requests that were answered before the supplement.
    MessageKindSupplement = "message.kind_supplement" ["requests"];
    /// The second line of a report: which of the reader's requests it is about.
    MessageKindReport = "message.kind_report" ["requests"];
    /// The second line of a message from an agent to itself.
    MessageKindNote = "message.kind_note" [];
    /// The second line of a message that asks for nothing and answers nothing.
    MessageKindInformation = "message.kind_information" [];
    /// A quotation of a request in other texts: the id and the first words of the request.
    MessageQuoted = "message.quoted" ["id", "words"];
    /// The mark that the system puts before a line of content if the line looks like a header.
    MessageQuoteMark = "message.quote_mark" [];
    /// The beginnings of the lines that only the system writes, in every language that a reader may know. Each line of
    /// this text is one such beginning. In it, the character `…` matches any text.
    MessageHeaderForms = "message.header_forms" [];
    /// The self-introduction of a writer at first contact: its role, its duty, and how it came to know the reader.
    MessageSelfIntroduction = "message.self_introduction" ["role", "duty", "source"];
    /// The reason that the writer gave for the first message to the reader.
    MessageContactReason = "message.contact_reason" ["reason"];
    /// The writer knows the reader through an introduction.
    KnownByIntroduction = "known_by.introduction" ["introducer"];
    /// The writer knows the reader from the writer's task brief.
    KnownByPreset = "known_by.preset" [];
    /// The reader hired the writer.
    KnownByParent = "known_by.parent" [];
    /// The writer hired the reader.
    KnownByChild = "known_by.child" [];
    /// The reader wrote to the writer first.
    KnownByFirstMessage = "known_by.first_message" [];
    /// The system made the writer and the reader contacts of each other.
    KnownBySystem = "known_by.system" [];

    /// The heading of the brief in the system prompt.
    BriefHeading = "brief.heading" [];
    /// In a brief: the line with the objective.
    BriefObjective = "brief.objective" ["value"];
    /// In a brief: the line with the constraints.
    BriefConstraints = "brief.constraints" ["value"];
    /// In a brief: the word that stands in the line with the constraints if there are no constraints.
    BriefNoConstraints = "brief.no_constraints" [];
    /// In a brief: the line with the inputs.
    BriefInputs = "brief.inputs" ["value"];
    /// In a brief: the line with the outputs.
    BriefOutputs = "brief.outputs" ["value"];
    /// In a brief: the line with the completion criteria, which tell when the work is done.
    BriefCompletionCriteria = "brief.completion_criteria" ["value"];
    /// In a brief: the line with the collaborators.
    BriefCollaborators = "brief.collaborators" ["value"];
    /// In a brief: the line with the reference material.
    BriefReferences = "brief.references" ["value"];
    /// In a brief: the line with the priority.
    BriefPriority = "brief.priority" ["value"];

    /// Takes the place of the tool rules in the prompt of a model that cannot call tools.
    SystemNoTools = "system.no_tools" [];
    /// Sent after the server could not read a tool call: lists the tools, and shows the form of a call.
    SystemHowToCall = "system.how_to_call" ["tools"];
    /// Sent after the server could not read a second tool call: tells the model that it may answer with plain text.
    SystemNoCall = "system.no_call" [];
    /// The heading of the runtime facts in the system prompt.
    SystemRuntimeHeading = "system.runtime_heading" [];
    /// The heading of the contact list in the system prompt.
    SystemContactsHeading = "system.contacts_heading" [];
    /// The heading of the list of model services, for agents that can make roles.
    SystemServicesHeading = "system.services_heading" [];
    /// One entry in the list of model services.
    SystemService = "system.service" ["id", "input"];
    /// One entry in the contact list.
    SystemContact = "system.contact" ["id", "role", "input", "output"];
    /// Added to the entry of a contact that has ended.
    SystemContactEnded = "system.contact_ended" [];
    /// The line with the interface spec of a contact, below the entry of the contact.
    SystemContactInterface = "system.contact_interface" ["spec"];
    /// The status line: how full the context window is.
    ContextStatus = "context.status" ["used", "window", "percent"];
    /// Advice for a model whose context window fills up.
    ContextFilling = "context.filling" [];
    /// Advice for a model whose context window is nearly full.
    ContextNearlyFull = "context.nearly_full" [];
    /// Asks a model to sum up a transcript, and gives the maximum length of the summary in tokens.
    ContextSumUp = "context.sum_up" ["tokens"];
    /// The heading above the last entries of a transcript. These are kept if no model can sum up the transcript.
    ContextNotSummedUp = "context.not_summed_up" [];
    /// The summary that takes the place of the older part of a history.
    SystemSummary = "system.summary" ["summary"];
    /// The word for the person in places that show the names of roles.
    SystemUserRole = "system.user_role" [];
    /// The word for root in places that show the names of roles.
    SystemRootRole = "system.root_role" [];

    /// The line that names an attached artifact. The artifact's content (a medium or a text) follows below the line.
    AttachmentLabel = "attachment.label" ["filename", "reference"];
    /// The line before a text that a tool took from outside the society.
    ToolQuoted = "attachment.quoted" ["origin"];
    /// The line above the medium of an artifact that a tool call fetched. It names the artifact.
    ToolMediaLabel = "attachment.tool_media_label" ["filename", "reference", "call"];
    /// The first line of an attachment block. Such a block takes the place of an attachment that is not shown.
    AttachmentHeading = "attachment.heading" [];
    /// In an attachment block: the line with the kind of content.
    AttachmentType = "attachment.type" ["kind"];
    /// In an attachment block: the line with the file name.
    AttachmentFilename = "attachment.filename" ["filename"];
    /// In an attachment block: the line with the reference.
    AttachmentReference = "attachment.reference" ["reference"];
    /// In an attachment block: the line with the size.
    AttachmentSize = "attachment.size" ["size"];
    /// In an attachment block: the line with the MIME type.
    AttachmentMimeType = "attachment.mime_type" ["mime_type"];
    /// Tells the reader that its model cannot take the attachment.
    AttachmentUnsupported = "attachment.unsupported" [];
    /// Advises the reader to forward the attachment to an agent with the needed capability.
    AttachmentForward = "attachment.forward" ["kind", "capability"];
    /// Names the agents that the reader can forward the attachment to.
    AttachmentSuggestion = "attachment.suggestion" ["agents"];
    /// For a reader who knows no agent with the capability: tells how to get such an agent.
    AttachmentNoSuggestion = "attachment.no_suggestion" ["capability", "name"];
    /// Tells the reader that the server has refused the attachment.
    AttachmentRefused = "attachment.refused" [];
    /// Names a model service whose agents could read the attachment.
    AttachmentHireOn = "attachment.hire_on" ["kind", "service"];
    /// Tells the reader that no other service takes the attachment.
    AttachmentNobody = "attachment.nobody" ["kind", "capability", "name"];
    /// Tells the reader that the store could not return the bytes.
    AttachmentReadFailed = "attachment.read_failed" [];
    /// The line that replaces an old medium which no longer fits into a request.
    AttachmentOld = "attachment.old" ["filename", "reference", "type", "size", "limit"];
    /// The line that replaces a medium of a message if the media of this message together do not fit into a request.
    AttachmentTogether = "attachment.together" ["filename", "reference", "type", "size", "limit"];
    /// Follows a text that was cut: tells how many characters are shown, and how to read the rest.
    AttachmentTextCut = "attachment.text_cut" ["filename", "reference", "shown", "total", "offset"];
    /// Precedes the text that was extracted from a document.
    AttachmentExtracted = "attachment.extracted" ["filename"];
    /// What people call the kind `text`.
    KindText = "attachment.kind_text" [];
    /// What people call the kind `image`.
    KindImage = "attachment.kind_image" [];
    /// What people call the kind `audio`.
    KindAudio = "attachment.kind_audio" [];
    /// What people call the kind `video`.
    KindVideo = "attachment.kind_video" [];
    /// What people call the kind `document`.
    KindDocument = "attachment.kind_document" [];
    /// What people call the kind `other`.
    KindOther = "attachment.kind_other" [];
    /// What people call the capability `text`.
    CapabilityText = "attachment.capability_text" [];
    /// What people call the capability `vision`.
    CapabilityVision = "attachment.capability_vision" [];
    /// What people call the capability `audio`.
    CapabilityAudio = "attachment.capability_audio" [];
    /// What people call the capability `video`.
    CapabilityVideo = "attachment.capability_video" [];
    /// What people call the capability `file`.
    CapabilityFile = "attachment.capability_file" [];

    /// The result of `get_artifact` for an artifact that is not shown.
    Unreadable = "unreadable.artifact" ["filename", "reference", "type", "size", "advice"];
    /// Advice with the result of `get_artifact`: an agent with the capability could read the artifact.
    UnreadableHire = "unreadable.hire" [];
    /// Advice with the result of `get_artifact`: the model cannot read this kind of file. This advice comes first, and
    /// further advice follows.
    UnreadableUnsupported = "unreadable.unsupported" [];
    /// Why no model gets a file: it is larger than the limit for the media of one request.
    LeftOutTooLarge = "left_out.too_large" ["encoded", "limit"];
    /// Why no model gets a picture: it has more pixels than can be decoded.
    LeftOutPixels = "left_out.pixels" ["width", "height", "limit", "edge"];
    /// Why no model gets a picture: it cannot be made small enough.
    LeftOutCannotFit = "left_out.cannot_fit" ["limit"];
    /// Why no model gets a picture: its format cannot be converted.
    LeftOutFormat = "left_out.format" [];
    /// Why no model gets a picture: it cannot be decoded.
    LeftOutDamaged = "left_out.damaged" [];

    /// Added to the result of `create_role`: tells which requirements of the new role its model service does not meet.
    RoleUnmet = "role.unmet" ["service", "unmet"];

    /// Takes the place of an artifact that is damaged, or whose bytes the store could not return.
    FailureFile = "failure.file" ["filename"];
    /// Tells the caller that there is no such artifact.
    FailureArtifactNotFound = "failure.artifact_not_found" [];

    /// Advice for the refusal `unknown_contact`.
    RefusalUnknownContact = "refusal.unknown_contact" ["id"];
    /// Advice for the refusal `ambiguous_name`.
    RefusalAmbiguousName = "refusal.ambiguous_name" ["name"];
    /// Advice for the refusal `invalid_task_brief`.
    RefusalInvalidTaskBrief = "refusal.invalid_task_brief" [];
    /// Advice for the refusal `invalid_message`.
    RefusalInvalidMessage = "refusal.invalid_message" [];
    /// Advice for the refusal `result_does_not_fit`.
    RefusalResultDoesNotFit = "refusal.result_does_not_fit" [];
    /// Advice for the refusal `invalid_arguments`.
    RefusalInvalidArguments = "refusal.invalid_arguments" [];
    /// Advice for the refusal `unknown_tool`.
    RefusalUnknownTool = "refusal.unknown_tool" ["tool"];
    /// Advice for the refusal `tool_not_permitted`.
    RefusalToolNotPermitted = "refusal.tool_not_permitted" ["tool", "groups"];
    /// Advice for the refusal `not_child_role`.
    RefusalNotChildRole = "refusal.not_child_role" ["id"];
    /// Advice for the refusal `not_descendant`.
    RefusalNotDescendant = "refusal.not_descendant" ["id"];
    /// Advice for the refusal `artifact_not_found`.
    RefusalArtifactNotFound = "refusal.artifact_not_found" [];
    /// Advice for the refusal `agent_terminated`.
    RefusalAgentTerminated = "refusal.agent_terminated" ["id"];
    /// Advice for the refusal `limit_reached`.
    RefusalLimitReached = "refusal.limit_reached" ["limit", "value"];
    /// Advice for the refusal `mailbox_full`.
    RefusalMailboxFull = "refusal.mailbox_full" ["id", "limit"];
    /// Advice for the refusal `outcome_unknown`.
    RefusalOutcomeUnknown = "refusal.outcome_unknown" ["tool"];
    /// Advice for the refusal `tool_not_permitted`, if a rule of the policy denies the call.
    RefusalDeniedByPolicy = "refusal.denied_by_policy" ["tool"];
    /// Advice for the refusal `approval_denied`, if the person gave no reason.
    RefusalApprovalDenied = "refusal.approval_denied" ["tool"];
    /// Advice for the refusal `approval_denied`, with the person's reason.
    RefusalApprovalDeniedBecause = "refusal.approval_denied_because" ["tool", "reason"];
    /// Advice for the refusal `approval_expired`.
    RefusalApprovalExpired = "refusal.approval_expired" ["tool"];
    /// Advice for the refusal `file_changed`.
    RefusalFileChanged = "refusal.file_changed" ["path"];
    /// Advice for the refusal `file_changed` if the agent has never viewed the file.
    RefusalFileNotViewed = "refusal.file_not_viewed" ["path"];
    /// Advice for the refusal `workspace_refused`.
    RefusalWorkspaceRefused = "refusal.workspace_refused" ["reason"];
    /// Advice for the refusal `merge_conflict`.
    RefusalMergeConflict = "refusal.merge_conflict" ["id"];
    /// Advice for the refusal `work_changed`.
    RefusalWorkChanged = "refusal.work_changed" ["id"];
    /// Advice for the refusal `tool_failed`.
    RefusalToolFailed = "refusal.tool_failed" ["tool", "reason"];
    /// Advice for the refusal `mcp_failed`.
    RefusalMcpFailed = "refusal.mcp_failed" ["server", "reason"];

    /// To the sender: the message could not be delivered because its receiver has ended.
    NoticeBounced = "notice.bounced" ["id", "message"];
    /// To the parent, or the person: an agent was parked.
    NoticeParked = "notice.parked" ["id", "role", "reason"];
    /// To the sender of a request: the person stopped the receiver.
    NoticeStopped = "notice.stopped" ["id", "message"];
    /// To an agent: it owes somebody an answer.
    NoticeReminder = "notice.reminder" ["id", "requests"];
    /// To an agent: it wrote texts that the asker has not received.
    NoticeReminderNote = "notice.reminder_note" ["id", "text"];
    /// To an agent: it stored artifacts for the asker without naming them.
    NoticeReminderArtifacts = "notice.reminder_artifacts" ["id", "refs"];
    /// To an asker: an agent gave no answer although it was reminded.
    NoticeUnanswered = "notice.unanswered" ["id", "requests"];
    /// To an asker: an agent did not deliver all texts and artifacts that it made for the asker.
    NoticeLeftover = "notice.leftover" ["id"];
    /// To an asker: a text that the agent wrote while it worked on the requests.
    NoticeMadeText = "notice.made_text" ["text"];
    /// To an asker: the artifacts that the agent stored while it worked on the requests.
    NoticeMadeArtifacts = "notice.made_artifacts" ["refs"];
    /// To an agent that is part of a deadlock: agents wait for each other's answers in a circle.
    NoticeDeadlock = "notice.deadlock" ["ids"];
    /// To each of two agents that have answered each other too often in a row: the system delivers no further messages
    /// between the two.
    NoticePairLimit = "notice.pair_limit" ["id", "limit"];
    /// To the sender of a request: the receiver failed while it worked on the request.
    NoticeReceiverFailed = "notice.receiver_failed" ["id", "message", "reason"];
    /// To the parent, or the person: an agent's model call failed and will not be retried.
    NoticeAgentFailed = "notice.agent_failed" ["id", "role", "service", "reason"];
    /// To root: the task is idle and the person has received no final message.
    NoticeNudge = "notice.nudge" [];
    /// To root: no model could be used for its last turn, and the person has asked polity to try again.
    NoticeTryAgain = "notice.try_again" [];
    /// To an agent that has ended its turn, but has not yet written to all children that it hired.
    NoticeUnwrittenChildren = "notice.unwritten_children" ["ids"];
    /// To an agent whose turn reached `maxToolRounds`: it must sum up now.
    NoticeSumUp = "notice.sum_up" ["limit"];
    /// To an agent that makes the same call again and again, with the same result.
    NoticeRepetition = "notice.repetition" ["tool", "times"];
    /// To an agent whose answer does not fit the schema that the request contains.
    NoticeResultDoesNotFit = "notice.result_does_not_fit" ["errors"];
    /// To an agent whose model wrote only thoughts.
    NoticeOnlyThoughts = "notice.only_thoughts" [];
    /// To an agent whose model wrote a tool call as text, in a form that cannot be run.
    NoticeFailedCall = "notice.failed_call" [];
    /// The first line that the command `polity` prints if it is called without arguments. The texts of this call have
    /// keys that begin with `First`.
    FirstWelcome = "first.welcome" [];
    /// `polity` without arguments: a configuration already declares services.
    FirstDeclared = "first.declared" ["origin"];
    /// `polity` without arguments: the words for the services of `llmservices.json`.
    FirstOfFile = "first.of_file" [];
    /// `polity` without arguments: the words for the service that environment variables declare.
    FirstOfEnvironment = "first.of_environment" [];
    /// `polity` without arguments: what polity is doing while it searches for model servers.
    FirstSearching = "first.searching" [];
    /// `polity` without arguments: what polity is doing while its daemon starts.
    FirstStarting = "first.starting" [];
    /// `polity` without arguments: what polity is doing while its daemon ends.
    FirstEnding = "first.ending" [];
    /// `polity` without arguments: one line about each model server that was found.
    FirstFound = "first.found" ["server", "url"];
    /// `polity` without arguments: no model server was found.
    FirstNothing = "first.nothing" [];
    /// `polity` without arguments: a server was found, but it has no model.
    FirstEmpty = "first.empty" ["server"];
    /// `polity` without arguments: the usual port of a server is open, but nothing answers there.
    FirstSilentPort = "first.silent_port" ["port", "server"];
    /// `polity` without arguments: one line about a service that polity proposes to declare.
    FirstService = "first.service" ["id", "model", "can", "window"];
    /// `polity` without arguments: the context window of a service, as a part of the line about the service.
    FirstWindow = "first.window" ["tokens"];
    /// `polity` without arguments: the context window of a service is not known.
    FirstWindowUnknown = "first.window_unknown" [];
    /// `polity` without arguments: warns that the context window of a service is small.
    FirstSmallWindow = "first.small_window" ["service", "window", "how"];
    /// `polity` without arguments: the server gives a larger context window than the small one that a service declares.
    FirstOutgrown = "first.outgrown" ["service", "declared", "there"];
    /// `polity` without arguments: what polity is doing while it asks the declared services.
    FirstAsking = "first.asking" [];
    /// `polity` without arguments: no server answers for a declared service.
    FirstUnreachable = "first.unreachable" ["service", "url", "how"];
    /// `polity` without arguments: what to do about a server of a known kind that does not answer.
    FirstStart = "first.start" ["server"];
    /// `polity` without arguments: what to do about another server that does not answer.
    FirstStartOther = "first.start_other" [];
    /// `polity` without arguments: the server of a declared service has not answered in time.
    FirstSlow = "first.slow" ["service", "url"];
    /// `polity` without arguments: a declared service cannot be asked, for example because a variable is not set.
    FirstMisconfigured = "first.misconfigured" ["service"];
    /// `polity` without arguments: the command that says more about services that do not work.
    FirstDoctor = "first.doctor" [];
    /// `polity` without arguments: how to get a larger context window from Ollama.
    FirstEnlargeOllama = "first.enlarge_ollama" ["tokens"];
    /// `polity` without arguments: how to get a larger context window from LM Studio.
    FirstEnlargeLmStudio = "first.enlarge_lm_studio" ["tokens"];
    /// `polity` without arguments: how to get a larger context window from llama.cpp.
    FirstEnlargeLlamaCpp = "first.enlarge_llama_cpp" ["tokens"];
    /// `polity` without arguments: how to get a larger context window from vLLM.
    FirstEnlargeVllm = "first.enlarge_vllm" ["tokens"];
    /// `polity` without arguments: how to get a larger context window from another server.
    FirstEnlargeOther = "first.enlarge_other" ["tokens"];
    /// `polity` without arguments: asks whether to write the proposed services to a file.
    FirstWrite = "first.write" ["path"];
    /// `polity` without arguments: asks whether to use the language of the locale.
    FirstLanguage = "first.language" ["path"];
    /// `polity` without arguments: a file was written.
    FirstWritten = "first.written" ["path"];
    /// `polity` without arguments: what the society can do with these services.
    FirstCan = "first.can" ["can"];
    /// `polity` without arguments: what the society cannot do with these services.
    FirstCannot = "first.cannot" ["cannot"];
    /// `polity` without arguments: the words for the capability `text`.
    FirstText = "first.text" [];
    /// `polity` without arguments: the words for the capability `vision`.
    FirstVision = "first.vision" [];
    /// `polity` without arguments: the words for the capability `audio`.
    FirstAudio = "first.audio" [];
    /// `polity` without arguments: the words for the capability `video`.
    FirstVideo = "first.video" [];
    /// `polity` without arguments: the words for the capability to call tools.
    FirstTools = "first.tools" [];
    /// `polity` without arguments: the heading of the sample prompts.
    FirstSamples = "first.samples" [];
    /// `polity` without arguments: a sample prompt that is a question to several agents.
    FirstSampleQuestion = "first.sample_question" [];
    /// `polity` without arguments: a sample prompt that is a question to root alone.
    FirstSampleAlone = "first.sample_alone" [];
    /// `polity` without arguments: a sample prompt for a text that root writes alone.
    FirstSampleLetter = "first.sample_letter" [];
    /// `polity` without arguments: a sample prompt about a picture.
    FirstSamplePicture = "first.sample_picture" [];
    /// `polity` without arguments: a sample prompt about a report.
    FirstSampleReport = "first.sample_report" [];
    /// `polity` without arguments: a sample prompt about the files of a directory.
    FirstSampleWork = "first.sample_work" [];
    /// `polity` without arguments: asks the person whether to open the chat, to open the live view, or to end.
    FirstNext = "first.next" [];
    /// `polity` without arguments: how to end the live view that this command has opened.
    FirstViewed = "first.viewed" [];
    /// Warns the person about a message: no service takes this kind of attachment.
    WarningNobodyTakes = "warning.nobody_takes" ["names", "capability"];
    /// Warns the person about a message: the model of root cannot call tools.
    WarningNoTools = "warning.no_tools" ["service"];
    /// Warns the person about a message: it does not fit into the context window of root's model.
    WarningDoesNotFit = "warning.does_not_fit" ["service", "tokens", "window"];
    /// To an agent: its previous turn failed or was stopped.
    NoticeTurnFailed = "notice.turn_failed" ["reason"];
    /// To the person: a limit stopped the task.
    NoticeLimit = "notice.limit" ["limit", "value"];
    /// A line of the notice about a limit: the consumption of one branch.
    NoticeLimitBranch = "notice.limit_branch" ["id", "calls", "tokens"];
    /// A line of the notice about a limit: the consumption of one branch, with the cost.
    NoticeLimitBranchCost = "notice.limit_branch_cost" ["id", "calls", "tokens", "cost"];
    /// To an asker: somebody ended the agent that owed the asker an answer.
    NoticeTerminated = "notice.terminated" ["id", "reason"];
    /// To an agent: a command that it runs in the background has ended.
    NoticeCommandEnded = "notice.command_ended" ["id", "command", "end"];
    /// The heading above the last lines that a command in the background printed.
    NoticeCommandLines = "notice.command_lines" [];
    /// How a command in the background ended: by itself.
    NoticeCommandExited = "notice.command_exited" ["code"];
    /// How a command in the background ended: it exceeded a limit.
    NoticeCommandLimited = "notice.command_limited" ["limit"];
    /// How a command in the background ended: somebody stopped it.
    NoticeCommandStopped = "notice.command_stopped" [];
    /// How a command in the background ended: something outside polity ended it.
    NoticeCommandLost = "notice.command_lost" [];
    /// How a command in the background ended: polity itself ended while it ran.
    NoticeCommandInterrupted = "notice.command_interrupted" [];
    /// How a command in the background ended: it could not be run.
    NoticeCommandFailed = "notice.command_failed" ["reason"];
}
