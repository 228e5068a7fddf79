//! The texts of the dialogue that `polity` without arguments leads. These functions do no IO.

use polity_llm::{CallError, FailureKind, ServerKind, Unusable};
use polity_probe::SMALL_WINDOW;
use polity_registry::{Discovered, Service};
use polity_society::content::{Capability, Direction};
use polity_society::id::ServiceId;
use polity_society::text::{TextKey, Texts};

/// The context window, in tokens, that polity advises in place of a small one.
const GOOD_WINDOW: u64 = 16_384;

/// What a declared service does when its server is asked for a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Glance {
    /// The server answers. Contains the context window that the server gives now, if the declared window is small and
    /// this one is larger.
    Answers(Option<u64>),
    /// The server has not answered in time. It may be busy.
    Slow,
    /// No server answers.
    Unreachable,
    /// The service cannot be asked as it is declared.
    Misconfigured,
}

impl Glance {
    /// Reads what [`polity_probe::glance`] returns.
    pub(super) fn of(asked: Result<Option<u64>, CallError>) -> Self {
        match asked.map_err(|error| error.kind) {
            Ok(larger) => Self::Answers(larger),
            Err(FailureKind::TimedOut) => Self::Slow,
            Err(FailureKind::Misconfigured) => Self::Misconfigured,
            Err(_) => Self::Unreachable,
        }
    }

    /// Returns whether a call of the service may succeed.
    pub(super) fn may_work(self) -> bool {
        match self {
            Self::Answers(_) | Self::Slow => true,
            Self::Unreachable | Self::Misconfigured => false,
        }
    }
}

/// Returns whether a line means yes.
pub(super) fn is_yes(line: &str) -> bool {
    ["", "y", "yes", "j", "是", "好", "可以"].contains(&line.to_lowercase().as_str())
}

/// What a service, or the whole society, may be able to do.
const ABILITIES: [(TextKey, Capability, Direction); 4] = [
    (TextKey::FirstVision, Capability::VISION, Direction::Input),
    (TextKey::FirstAudio, Capability::AUDIO, Direction::Input),
    (TextKey::FirstVideo, Capability::VIDEO, Direction::Input),
    (TextKey::FirstTools, Capability::TOOL_CALLING, Direction::Output),
];

fn has(service: &Service, capability: &Capability, direction: Direction) -> bool {
    // Agents may use tools even on a service that declares no output capabilities: see `Service::tools_allowed`.
    let is_tools = *capability == Capability::TOOL_CALLING;
    service.capabilities.has(capability, direction) || (is_tools && service.tools_allowed())
}

fn can<'t>(services: &[&Service], texts: &'t Texts) -> (Vec<&'t str>, Vec<&'t str>) {
    let mut can = vec![texts.get(TextKey::FirstText)];
    let mut cannot = Vec::new();
    for (words, capability, direction) in &ABILITIES {
        let side = if services.iter().any(|service| has(service, capability, *direction)) {
            &mut can
        } else {
            &mut cannot
        };
        side.push(texts.get(*words));
    }
    (can, cannot)
}

/// Returns whether the texts are Chinese. The word for `text` shows it, because it is not ASCII in Chinese.
fn is_chinese(texts: &Texts) -> bool {
    !texts.get(TextKey::FirstText).is_ascii()
}

fn joined(words: &[&str], texts: &Texts) -> String {
    words.join(if is_chinese(texts) { "、" } else { ", " })
}

/// Says which configuration declares services already. `origin` is the text about the origin of the services.
pub(super) fn declared(origin: TextKey, texts: &Texts) -> String {
    texts.fill(TextKey::FirstDeclared, &[("origin", texts.get(origin))])
}

/// Names each found server in a line, and describes each of its services in a line below.
pub(super) fn of_servers(found: &[Discovered], texts: &Texts) -> Vec<String> {
    let mut lines = Vec::new();
    for server in found {
        let url = server.first.endpoint.base_url.as_str();
        let values = [("server", server.server_name.as_str()), ("url", url)];
        lines.push(texts.fill(TextKey::FirstFound, &values));
        lines.extend(server.services().map(|service| of_service(service, texts)));
    }
    lines
}

/// Says why no model server was found. `unusable` contains the servers that polity cannot use, the most preferred
/// first.
pub(super) fn of_unusable(unusable: &[(ServerKind, Unusable)], texts: &Texts) -> Vec<String> {
    let mut lines = Vec::new();
    for (server, _) in unusable.iter().filter(|(_, why)| *why == Unusable::Silent) {
        let values = [("port", &*server.port().to_string()), ("server", &*server.to_string())];
        lines.push(texts.fill(TextKey::FirstSilentPort, &values));
    }
    let empty = unusable.iter().find(|(_, why)| *why == Unusable::Empty);
    lines.push(match empty {
        Some((server, _)) => texts.fill(TextKey::FirstEmpty, &[("server", &server.to_string())]),
        None => texts.get(TextKey::FirstNothing).to_owned(),
    });
    lines
}

/// Describes one service in a line.
pub(super) fn of_service(service: &Service, texts: &Texts) -> String {
    let (can, _) = can(&[service], texts);
    let window = match service.context_window {
        Some(window) => texts.fill(TextKey::FirstWindow, &[("tokens", &window.to_string())]),
        None => texts.get(TextKey::FirstWindowUnknown).to_owned(),
    };
    let values = [
        ("id", service.id.as_str()),
        ("model", service.endpoint.model.as_str()),
        ("can", &*joined(&can, texts)),
        ("window", &*window),
    ];
    texts.fill(TextKey::FirstService, &values)
}

/// Says in one line what the society can do, and what it cannot do; nothing if there is no real model.
pub(super) fn abilities(services: &[&Service], texts: &Texts) -> Option<String> {
    if services.is_empty() {
        return None;
    }
    let (can, cannot) = can(services, texts);
    let mut line = texts.fill(TextKey::FirstCan, &[("can", &joined(&can, texts))]);
    if !cannot.is_empty() {
        // In Chinese, no space follows a full stop.
        line.push_str(if is_chinese(texts) { "" } else { " " });
        line.push_str(&texts.fill(TextKey::FirstCannot, &[("cannot", &joined(&cannot, texts))]));
    }
    Some(line)
}

/// Returns the services of which a call may succeed. `glances` is empty if the services were not asked.
pub(super) fn usable<'s>(services: &[&'s Service], glances: &[Glance]) -> Vec<&'s Service> {
    let may_work = |index: usize| glances.get(index).is_none_or(|glance| glance.may_work());
    let indexed = services.iter().copied().enumerate();
    indexed.filter_map(|(index, service)| may_work(index).then_some(service)).collect()
}

/// Returns whether root may get an answer: from the default service, or from one of its fallbacks. `glances` is empty
/// if the services were not asked.
pub(super) fn root_may_work(services: &[&Service], glances: &[Glance], default: &ServiceId) -> bool {
    if glances.is_empty() {
        return true;
    }
    let find = |id: &ServiceId| services.iter().zip(glances).find(|(service, _)| service.id == *id);
    let mut next = find(default);
    // Fallbacks may form a circle, so this looks at most once at each service.
    for _ in services {
        let Some((service, glance)) = next else { return false };
        if glance.may_work() {
            return true;
        }
        next = service.fallback.as_ref().and_then(find);
    }
    false
}

/// Returns warnings about the services, with advice. Only the first service must be able to use tools, because root
/// uses this service. `glances` contains an element for each service if the services were asked; otherwise none.
pub(super) fn warnings(services: &[&Service], glances: &[Glance], texts: &Texts) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some(first) = services.first() else { return warnings };
    if !first.tools_allowed() {
        warnings.push(texts.fill(TextKey::WarningNoTools, &[("service", first.id.as_str())]));
    }
    for (index, service) in services.iter().enumerate() {
        let glance = glances.get(index).copied().unwrap_or(Glance::Answers(None));
        warnings.extend(of_glance(service, glance, texts));
    }
    if glances.iter().any(|glance| !matches!(glance, Glance::Answers(_))) {
        warnings.push(texts.get(TextKey::FirstDoctor).to_owned());
    }
    warnings
}

/// Returns a warning if a service does not answer, or if its context window is small.
fn of_glance(service: &Service, glance: Glance, texts: &Texts) -> Option<String> {
    let (id, url) = (service.id.as_str(), service.endpoint.base_url.as_str());
    let server = ServerKind::usual_at(url);
    match glance {
        Glance::Answers(larger) => {
            let window = service.context_window.filter(|window| *window < SMALL_WINDOW)?;
            let (window, larger) = (window.to_string(), larger.map(|larger| larger.to_string()));
            Some(match larger {
                Some(larger) => {
                    let values = [("service", id), ("declared", &*window), ("there", &*larger)];
                    texts.fill(TextKey::FirstOutgrown, &values)
                }
                None => {
                    let how = how_to_enlarge(server, GOOD_WINDOW, texts);
                    let values = [("service", id), ("window", &*window), ("how", &*how)];
                    texts.fill(TextKey::FirstSmallWindow, &values)
                }
            })
        }
        Glance::Slow => Some(texts.fill(TextKey::FirstSlow, &[("service", id), ("url", url)])),
        Glance::Unreachable => {
            let how = match server {
                Some(server) => texts.fill(TextKey::FirstStart, &[("server", &server.to_string())]),
                None => texts.get(TextKey::FirstStartOther).to_owned(),
            };
            let values = [("service", id), ("url", url), ("how", &*how)];
            Some(texts.fill(TextKey::FirstUnreachable, &values))
        }
        Glance::Misconfigured => Some(texts.fill(TextKey::FirstMisconfigured, &[("service", id)])),
    }
}

/// Returns, in the language of the texts, what [`ServerKind::how_to_enlarge`] returns in English. `server` is the kind of
/// server, if it is known.
fn how_to_enlarge(server: Option<ServerKind>, tokens: u64, texts: &Texts) -> String {
    let key = match server {
        Some(ServerKind::Ollama) => TextKey::FirstEnlargeOllama,
        Some(ServerKind::LmStudio) => TextKey::FirstEnlargeLmStudio,
        Some(ServerKind::LlamaCpp) => TextKey::FirstEnlargeLlamaCpp,
        Some(ServerKind::Vllm) => TextKey::FirstEnlargeVllm,
        None => TextKey::FirstEnlargeOther,
    };
    texts.fill(key, &[("tokens", &tokens.to_string())])
}

/// Returns three commands with sample prompts that the society can fulfil. Without tools, root hires nobody and opens no
/// directory, so the samples then need root's own service only. One sample attaches a picture if an agent can see it,
/// else a report, which polity itself turns into text.
pub(super) fn samples(services: &[&Service], texts: &Texts) -> String {
    // If there are no services, the rehearsal models answer, and they get tools.
    let has_tools = services.first().is_none_or(|first| first.tools_allowed());
    let within_reach = if has_tools { services } else { services.get(..1).unwrap_or_default() };
    let sees = within_reach.iter().any(|service| has(service, &Capability::VISION, Direction::Input));
    let (question, work) = if has_tools {
        (TextKey::FirstSampleQuestion, ("--workspace . ", TextKey::FirstSampleWork))
    } else {
        (TextKey::FirstSampleAlone, ("", TextKey::FirstSampleLetter))
    };
    let attached = if sees {
        ("--attach picture.png ", TextKey::FirstSamplePicture)
    } else {
        ("--attach report.pdf ", TextKey::FirstSampleReport)
    };
    let lines = [("", question), attached, work]
        .map(|(options, prompt)| format!("  polity run {options}\"{}\"", texts.get(prompt)));
    format!("{}\n{}", texts.get(TextKey::FirstSamples), lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_llm::Endpoint;
    use polity_registry::{Declaration, Origin, built_in_texts};
    use polity_society::content::Capabilities;
    use polity_society::text::Language;

    fn service(input: &[Capability], output: &[Capability], window: Option<u64>) -> Service {
        let endpoint = Endpoint::new("http://127.0.0.1:11434/v1", "m");
        let capabilities = Capabilities { input: input.to_vec(), output: output.to_vec() };
        let declared = Declaration::Declared;
        let service = Service::new(ServiceId::new("local"), endpoint);
        Service { capabilities, declared, context_window: window, ..service }
    }

    #[test]
    fn a_service_in_words() {
        let texts = built_in_texts(Language::En);
        let sees =
            service(&[Capability::TEXT, Capability::VISION], &[Capability::TOOL_CALLING], Some(32_768));
        insta::assert_snapshot!(of_service(&sees, &texts), @"- local (m): read and write text, see pictures, use tools (hire agents, work on files, run commands); a context window of 32768 tokens");
        insta::assert_snapshot!(abilities(&[&sees], &texts).unwrap_or_default(), @"This society can: read and write text, see pictures, use tools (hire agents, work on files, run commands). It cannot: hear sound, watch video.");
        assert_eq!(warnings(&[&sees], &[], &texts), Vec::<String>::new());
        assert!(samples(&[&sees], &texts).contains("--attach picture.png"));
        let chinese = of_service(&sees, &built_in_texts(Language::Zh));
        insta::assert_snapshot!(chinese, @"- local（m）：读写文字、看图片、使用工具（创建智能体、处理文件、运行命令）；上下文窗口 32768 tokens");
        let chinese = abilities(&[&sees], &built_in_texts(Language::Zh)).unwrap_or_default();
        insta::assert_snapshot!(chinese, @"这个社会能：读写文字、看图片、使用工具（创建智能体、处理文件、运行命令）。不能：听声音、看视频。");
    }

    #[test]
    fn all_found_servers_are_named_and_all_services_count() {
        let texts = built_in_texts(Language::En);
        let server = |name: &str, id: &str, port: u16, input: &[Capability]| {
            let endpoint = Endpoint::new(format!("http://127.0.0.1:{port}/v1"), "m");
            let service = service(input, &[Capability::TEXT], None);
            let first = Service { id: ServiceId::new(id), endpoint, ..service };
            Discovered { server_name: name.to_owned(), first, others: Vec::new() }
        };
        let found = [
            server("Ollama", "local", 11_434, &[Capability::TEXT]),
            server("LM Studio", "lm-studio", 1_234, &[Capability::TEXT, Capability::VISION]),
        ];
        insta::assert_snapshot!(of_servers(&found, &texts).join("\n"), @r"
        Found Ollama at http://127.0.0.1:11434/v1:
        - local (m): read and write text; a context window of unknown size
        Found LM Studio at http://127.0.0.1:1234/v1:
        - lm-studio (m): read and write text, see pictures; a context window of unknown size
        ");
        let services: Vec<&Service> = found.iter().flat_map(Discovered::services).collect();
        insta::assert_snapshot!(abilities(&services, &texts).unwrap_or_default(), @"This society can: read and write text, see pictures. It cannot: hear sound, watch video, use tools (hire agents, work on files, run commands).");
    }

    #[test]
    fn a_port_that_is_open_and_silent_is_named() {
        let texts = built_in_texts(Language::En);
        let silent = (ServerKind::Ollama, Unusable::Silent);
        insta::assert_snapshot!(of_unusable(&[silent], &texts).join("\n"), @r"
        Port 11434 is open, but its server has not answered. If it is Ollama, wait until it answers, or start it again.
        No model server answers on this machine (Ollama 11434, LM Studio 1234, llama.cpp 8080, vLLM 8000), and OPENAI_API_KEY is not set. Start one of these servers, and run polity again. Until then, the built-in rehearsal models answer.
        ");
        let empty = of_unusable(&[silent, (ServerKind::LmStudio, Unusable::Empty)], &texts);
        assert_eq!(empty.len(), 2);
        assert!(empty[1].starts_with("LM Studio is running, but has no model."), "{empty:?}");
        assert_eq!(of_unusable(&[], &texts), [texts.get(TextKey::FirstNothing)]);
    }

    #[test]
    fn what_is_wrong_is_said_with_the_mend() {
        let texts = built_in_texts(Language::En);
        let poor = service(&[Capability::TEXT], &[Capability::TEXT], Some(4_096));
        let warnings = warnings(&[&poor], &[], &texts).join("\n");
        assert!(warnings.contains("Set model in llmservices.json to a model that calls tools"), "{warnings}");
        assert!(warnings.contains("start Ollama with OLLAMA_CONTEXT_LENGTH=16384"), "{warnings}");
        assert!(warnings.ends_with("\n  polity doctor --fix"), "{warnings}");
    }

    #[test]
    fn a_declared_service_that_does_not_answer_is_named() {
        let texts = built_in_texts(Language::En);
        let local = service(&[Capability::TEXT], &[Capability::TOOL_CALLING], Some(4_096));
        let endpoint = Endpoint::new("https://models.example/v1", "m");
        let other = Service { id: ServiceId::new("other"), endpoint, context_window: None, ..local.clone() };
        let check = |glances: [Glance; 2]| warnings(&[&local, &other], &glances, &texts).join("\n");
        insta::assert_snapshot!(check([Glance::Unreachable; 2]), @r"
        warning: local does not answer at http://127.0.0.1:11434/v1: start Ollama.
        warning: other does not answer at https://models.example/v1: start its server, or correct its address.
        This command says more:
          polity doctor
        ");
        insta::assert_snapshot!(check([Glance::Slow, Glance::Misconfigured]), @r"
        warning: local has not answered at http://127.0.0.1:11434/v1 yet: its server may be busy.
        warning: other cannot be asked as it is declared.
        This command says more:
          polity doctor
        ");
        insta::assert_snapshot!(check([Glance::Answers(Some(16_384)), Glance::Answers(None)]), @r"
        The server of local now gives a context window of 16384 tokens, but contextWindow in llmservices.json is 4096. Set it to 16384, or let this command do it:
          polity doctor --fix
        ");
    }

    #[test]
    fn each_failure_of_a_glance_tells_what_the_server_does() {
        for kind in FailureKind::ALL {
            let error = CallError { kind: *kind, message: String::new(), status: None, retry_after: None };
            let expect = match kind {
                FailureKind::TimedOut => Glance::Slow,
                FailureKind::Misconfigured => Glance::Misconfigured,
                _ => Glance::Unreachable,
            };
            assert_eq!(Glance::of(Err(error)), expect, "{kind:?}");
        }
        assert_eq!(Glance::of(Ok(Some(16_384))), Glance::Answers(Some(16_384)));
    }

    #[test]
    fn root_works_with_its_service_or_a_fallback() {
        let named = |id: &str, fallback: &str| {
            let fallback = Some(ServiceId::new(fallback)).filter(|id| !id.as_str().is_empty());
            Service { id: ServiceId::new(id), fallback, ..service(&[Capability::TEXT], &[], None) }
        };
        let (first, second, third) = (named("a", "b"), named("b", "a"), named("c", ""));
        let services = [&first, &second, &third];
        let check = |glances: &[Glance], default: &str, expect: bool| {
            let told = root_may_work(&services, glances, &ServiceId::new(default));
            assert_eq!(told, expect, "{glances:?} {default}");
        };
        let (there, gone) = (Glance::Answers(None), Glance::Unreachable);
        check(&[], "a", true);
        check(&[there, gone, gone], "a", true);
        check(&[gone, Glance::Slow, gone], "a", true);
        check(&[gone, gone, there], "a", false);
        check(&[gone, gone, there], "c", true);
        check(&[there, there, Glance::Misconfigured], "c", false);
        let ids: Vec<&str> =
            usable(&services, &[gone, there, there]).iter().map(|service| service.id.as_str()).collect();
        assert_eq!(ids, ["b", "c"]);
    }

    #[test]
    fn only_samples_that_the_society_can_fulfil_are_offered() {
        let texts = built_in_texts(Language::En);
        let check = |services: &[&Service], expect: [(&str, TextKey); 3]| {
            let samples = samples(services, &texts);
            let lines: Vec<&str> = samples.lines().skip(1).collect();
            let expect =
                expect.map(|(options, prompt)| format!("  polity run {options}\"{}\"", texts.get(prompt)));
            assert_eq!(lines, expect);
        };
        let report = ("--attach report.pdf ", TextKey::FirstSampleReport);
        let picture = ("--attach picture.png ", TextKey::FirstSamplePicture);
        let together = |middle| {
            let work = ("--workspace . ", TextKey::FirstSampleWork);
            [("", TextKey::FirstSampleQuestion), middle, work]
        };
        let alone = |middle| [("", TextKey::FirstSampleAlone), middle, ("", TextKey::FirstSampleLetter)];
        let text = service(&[Capability::TEXT], &[Capability::TEXT], None);
        let tools = service(&[Capability::TEXT], &[Capability::TOOL_CALLING], None);
        let sees = service(&[Capability::TEXT, Capability::VISION], &[Capability::TEXT], None);
        check(&[], together(report));
        check(&[&tools], together(report));
        // Root hires an agent that sees the picture.
        check(&[&tools, &sees], together(picture));
        check(&[&text], alone(report));
        check(&[&sees], alone(picture));
        // Root uses the first service, and without tools it can hire nobody who sees.
        check(&[&text, &sees], alone(report));
    }

    #[test]
    fn all_lines_are_in_one_language() {
        let texts = built_in_texts(Language::Zh);
        let said = [TextKey::FirstOfFile, TextKey::FirstOfEnvironment].map(|key| declared(key, &texts));
        insta::assert_snapshot!(said.join("\n"), @r"
        已有配置：llmservices.json 中的服务。
        已有配置：OPENAI_API_KEY 对应的 OpenAI 服务。
        ");
        let small = service(&[Capability::TEXT], &[Capability::TOOL_CALLING], Some(4_096));
        insta::assert_snapshot!(warnings(&[&small], &[], &texts).join("\n"), @r"
        警告：服务 local 的上下文窗口只有 4096 tokens，偏小：智能体只有简短的规则和少数工具。解决办法：启动 Ollama 时设置 OLLAMA_CONTEXT_LENGTH=16384。然后运行下面的命令：它询问新的大小，如果 llmservices.json 已声明该服务，就写入其中：
          polity doctor --fix
        ");
    }

    #[test]
    fn the_english_texts_are_those_of_other_commands() {
        let texts = built_in_texts(Language::En);
        let servers = [ServerKind::Ollama, ServerKind::LmStudio, ServerKind::LlamaCpp, ServerKind::Vllm];
        for server in servers {
            assert_eq!(how_to_enlarge(Some(server), 7, &texts), server.how_to_enlarge(7));
        }
        assert_eq!(texts.get(TextKey::FirstOfFile), Origin::File.to_string());
        assert_eq!(texts.get(TextKey::FirstOfEnvironment), Origin::Environment.to_string());
    }
}
