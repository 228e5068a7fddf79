//! The texts of the dialogue that `polity` without arguments leads. These functions do no IO.

use polity_llm::{ServerKind, Unusable};
use polity_registry::{Discovered, Service};
use polity_society::content::{Capability, Direction};
use polity_society::text::{Language, TextKey, Texts};

/// A context window with fewer tokens than this counts as small.
const SMALL_WINDOW: u64 = 8_192;
/// The context window, in tokens, that polity advises in place of a small one.
const GOOD_WINDOW: u64 = 16_384;

/// Returns the language that the locale in the environment names; nothing if it names none. `variable` looks up an
/// environment variable.
pub(super) fn locale(variable: impl Fn(&str) -> Option<String>) -> Option<Language> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_MESSAGES")).or_else(|| set("LANG"))?;
    let name = locale.split(['_', '.', '@', '-']).next().unwrap_or_default().to_ascii_lowercase();
    match name.as_str() {
        "c" | "posix" => None,
        "zh" => Some(Language::Zh),
        _ => Some(Language::En),
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

/// Returns warnings about the services, with advice. Only the first service must be able to use tools, because root
/// uses this service.
pub(super) fn warnings(services: &[&Service], texts: &Texts) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some(first) = services.first() else { return warnings };
    if !first.tools_allowed() {
        warnings.push(texts.fill(TextKey::WarningNoTools, &[("service", first.id.as_str())]));
    }
    for service in services {
        let Some(window) = service.context_window.filter(|window| *window < SMALL_WINDOW) else { continue };
        let how = how_to_enlarge(ServerKind::usual_at(&service.endpoint.base_url), GOOD_WINDOW, texts);
        // The file has the window that was found, and keeps it. So a larger window at the server alone changes nothing.
        let values = [
            ("service", service.id.as_str()),
            ("window", &*window.to_string()),
            ("how", how.as_str()),
            ("tokens", &*GOOD_WINDOW.to_string()),
        ];
        warnings.push(texts.fill(TextKey::FirstSmallWindow, &values));
    }
    warnings
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
    use polity_society::id::ServiceId;

    #[test]
    fn the_language_of_a_locale() {
        let check = |variables: &[(&str, &str)], expect: Option<Language>| {
            let variable = |name: &str| {
                let set = variables.iter().find(|(variable, _)| *variable == name);
                set.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(locale(variable), expect, "{variables:?}");
        };
        check(&[], None);
        check(&[("LANG", "C.UTF-8")], None);
        check(&[("LANG", "zh_CN.UTF-8")], Some(Language::Zh));
        check(&[("LANG", "de_DE.UTF-8")], Some(Language::En));
        check(&[("LANG", "zh_CN"), ("LC_ALL", "en_US.UTF-8")], Some(Language::En));
        check(&[("LANG", "zh_CN"), ("LC_ALL", "")], Some(Language::Zh));
    }

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
        assert_eq!(warnings(&[&sees], &texts), Vec::<String>::new());
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
        let warnings = warnings(&[&poor], &texts).join("\n");
        assert!(warnings.contains("Set model in llmservices.json to a model that calls tools"), "{warnings}");
        assert!(warnings.contains("start Ollama with OLLAMA_CONTEXT_LENGTH=16384"), "{warnings}");
        // A window in the file stays as it is when the server gives more. So both places are named.
        let both =
            "if llmservices.json declares the service by then, also set its contextWindow there to 16384";
        assert!(warnings.contains(both), "{warnings}");
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
        insta::assert_snapshot!(warnings(&[&small], &texts).join("\n"), @"警告：服务 local 的上下文窗口只有 4096 tokens，偏小：智能体只有简短的规则和少数工具。解决办法：启动 Ollama 时设置 OLLAMA_CONTEXT_LENGTH=16384，再运行 polity；如果那时 llmservices.json 已声明该服务，还要把其中的 contextWindow 改为 16384。");
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
