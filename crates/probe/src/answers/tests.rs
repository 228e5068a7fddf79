use super::*;
use crate::facts::{Facts, Server, Window};
use proptest::prelude::*;
use serde_json::json;

/// Writes facts as a short text: `+vision` if the model has the capability `vision`, and `-vision` if the model lacks
/// it.
fn told(facts: &Facts) -> String {
    let side = |side: &BTreeMap<Capability, Support>| {
        let words = side.iter().map(|(capability, support)| match support {
            Support::Has => format!("+{capability}"),
            Support::HasNot => format!("-{capability}"),
        });
        words.collect::<Vec<_>>().join(" ")
    };
    format!("{} | {}", side(&facts.input), side(&facts.output))
}

fn window(in_force: impl Into<Option<u64>>, largest: impl Into<Option<u64>>) -> Window {
    Window { in_force: in_force.into(), largest: largest.into() }
}

#[test]
fn ollama_says_what_a_model_can_do() {
    let body = json!({
        "license": "…", "modelfile": "# …", "template": "{{ .Prompt }}",
        "parameters": "num_ctx                        16384\nstop                           \"<|im_end|>\"",
        "details": {"format": "gguf", "family": "qwen3vl", "parameter_size": "8.8B"},
        "model_info": {"general.architecture": "qwen3vl", "qwen3vl.context_length": 262_144, "qwen3vl.block_count": 36},
        "capabilities": ["completion", "vision", "tools", "thinking"],
    });
    let facts = ollama::show(&body).unwrap();
    assert_eq!(facts.server, Server::Ollama);
    assert_eq!(told(&facts), "-audio +vision | +text +tool_calling");
    assert_eq!(facts.window, window(16_384, 262_144));

    let embeds = json!({"capabilities": ["embedding"], "model_info": {}});
    assert_eq!(told(&ollama::show(&embeds).unwrap()), "-audio -vision | -text -tool_calling");
    // The answer of an older Ollama, which has no list of capabilities.
    let old = json!({"model_info": {"general.architecture": "llama", "llama.context_length": 8192}});
    let facts = ollama::show(&old).unwrap();
    assert_eq!((told(&facts), facts.window), (" | ".to_owned(), window(None, 8192)));
}

#[test]
fn ollama_says_how_loaded_models_are_set_up() {
    let body = json!({"models": [
        {"name": "other:latest", "model": "other:latest", "context_length": 1},
        {"name": "qwen3:latest", "model": "qwen3:latest", "size_vram": 5, "context_length": 4096},
    ]});
    assert_eq!(ollama::running(&body, "qwen3"), Some(4096));
    assert_eq!(ollama::running(&body, "gone"), None);
    assert_eq!(ollama::running(&json!({"models": [{"model": "m"}]}), "m"), None);
}

#[test]
fn lm_studio_says_what_a_model_is() {
    let entry = |id: &str, kind: &str| {
        json!({"id": id, "object": "model", "type": kind, "publisher": "p", "arch": "a", "compatibility_type": "gguf",
            "quantization": "4bit", "state": "not-loaded", "max_context_length": 32768})
    };
    let mut loaded = entry("qwen/qwen3-8b", "llm");
    loaded["state"] = json!("loaded");
    loaded["loaded_context_length"] = json!(4096);
    loaded["capabilities"] = json!(["tool_use"]);
    let list = [entry("qwen2-vl-7b", "vlm"), loaded, entry("text-embedding-nomic", "embeddings")];
    let body = json!({"object": "list", "data": list});
    let read = |model: &str| lm_studio::read(&body, model).unwrap();
    let facts = read("qwen/qwen3-8b");
    assert_eq!(told(&facts), "-vision | +text +tool_calling");
    assert_eq!(facts.window, window(4096, 32_768));
    assert_eq!(told(&read("qwen2-vl-7b")), "+vision | +text");
    assert_eq!(told(&read("text-embedding-nomic")), " | -text");
    let gone = read("gone");
    assert_eq!((told(&gone), gone.models.unwrap().len()), (" | ".to_owned(), 3));
    // A server other than LM Studio may also answer requests to this path.
    assert_eq!(lm_studio::read(&json!({"object": "list", "data": [{"id": "m"}]}), "m"), None);
}

#[test]
fn llama_cpp_says_how_it_was_started() {
    let body = json!({
        "default_generation_settings": {"id": 0, "n_ctx": 16384, "params": {}},
        "total_slots": 1, "model_path": "/models/a.gguf", "chat_template": "{%- if tools %}…", "build_info": "b1",
        "modalities": {"vision": true, "audio": false},
    });
    let facts = llama_cpp::read(&body).unwrap();
    assert_eq!(told(&facts), "-audio +vision | +tool_calling");
    assert_eq!(facts.window, window(16_384, None));
    let check = |fields: Value, expect: &str| {
        let mut body = json!({"default_generation_settings": {"n_ctx": 1}});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        assert_eq!(told(&llama_cpp::read(&body).unwrap()), expect);
    };
    check(json!({"chat_template": "{{ messages }}"}), " | ");
    check(
        json!({"chat_template": "{{ messages }}", "chat_template_caps": {"supports_tools": false}}),
        " | -tool_calling",
    );
    check(json!({"chat_template_caps": {"supports_tools": true}}), " | +tool_calling");
    assert_eq!(llama_cpp::read(&json!({"status": "ok"})), None);
}

#[test]
fn openrouter_says_what_a_model_takes() {
    let body = json!({"data": [{
        "id": "google/gemini-2.5-flash", "name": "Google: Gemini 2.5 Flash", "context_length": 1_048_576,
        "architecture": {"modality": "text+image->text", "input_modalities": ["file", "image", "text", "audio"],
            "output_modalities": ["text"], "tokenizer": "Gemini"},
        "top_provider": {"context_length": 1_000_000, "max_completion_tokens": 65535},
        "supported_parameters": ["max_tokens", "structured_outputs", "tool_choice", "tools"],
    }, {
        "id": "a/plain", "context_length": 4096, "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
        "top_provider": {"context_length": null}, "supported_parameters": ["max_tokens"],
    }]});
    let facts = list::read(&body, "google/gemini-2.5-flash:nitro").unwrap();
    assert_eq!(facts.server, Server::OpenRouter);
    assert_eq!(told(&facts), "+audio +file +text -video +vision | +structured_output +text +tool_calling");
    assert_eq!(facts.window, window(1_000_000, 1_000_000));
    let facts = list::read(&body, "a/plain").unwrap();
    assert_eq!(told(&facts), "-audio +text -video -vision | +text -tool_calling");
    assert_eq!(facts.window.in_force, Some(4096));
}

#[test]
fn lists_of_models_of_many_servers() {
    let vllm = json!({"object": "list", "data": [{"id": "Qwen/Q", "object": "model", "owned_by": "vllm", "max_model_len": 32768}]});
    let facts = list::read(&vllm, "Qwen/Q").unwrap();
    assert_eq!((facts.server, facts.window.in_force), (Server::Vllm, Some(32_768)));
    let llama = json!({"object": "list", "models": [{"name": "x"}], "data": [{"id": "a.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 32768}}]});
    let facts = list::read(&llama, "default").unwrap();
    assert_eq!((facts.server, facts.window), (Server::LlamaCpp, window(None, 32_768)));
    let check = |body: Value, expect: Option<&[&str]>| {
        let models = list::read(&body, "m").and_then(|facts| facts.models);
        let expect = expect.map(|models| models.iter().map(|model| (*model).to_owned()).collect());
        assert_eq!(models, expect, "{body}");
    };
    check(
        json!({"data": [{"id": "a"}, {"id": 7}, null, {"id": "b\n"}, {"id": "c\u{1b}d"}]}),
        Some(&["a", "b"]),
    );
    check(json!([{"id": "a"}]), Some(&["a"]));
    check(json!({"models": [{"name": "models/a"}]}), Some(&["models/a"]));
    check(json!({"data": []}), Some(&[]));
    check(json!({"data": [{"other": 1}]}), None);
    check(json!({"data": null}), None);
    check(json!("nonsense"), None);
    check(json!({"data": [{"id": "x".repeat(1000)}]}), None);
}

#[test]
fn numbers_that_are_not_believed() {
    for bad in [
        json!(0),
        json!(-1),
        json!(1.5),
        json!("4096"),
        json!(null),
        json!(1e300),
        json!([4096]),
        json!(u64::MAX),
    ] {
        assert_eq!(tokens(Some(&bad)), None, "{bad}");
    }
    assert_eq!(tokens(Some(&json!(4096.0))), Some(4096));
}

/// Generates any JSON that a server may answer. The JSON contains the names that the readers look for.
fn anything() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("data"),
        Just("models"),
        Just("id"),
        Just("name"),
        Just("type"),
        Just("state"),
        Just("capabilities"),
        Just("model_info"),
        Just("parameters"),
        Just("general.architecture"),
        Just("m.context_length"),
        Just("m"),
        Just("default_generation_settings"),
        Just("n_ctx"),
        Just("modalities"),
        Just("vision"),
        Just("tools"),
        Just("architecture"),
        Just("input_modalities"),
        Just("supported_parameters"),
        Just("num_ctx 99"),
        Just("vlm"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_a_server_says_is_read_within_bounds(body in anything(), model in "m|vision|.{0,4}") {
        let read = [
            list::read(&body, &model),
            lm_studio::read(&body, &model),
            ollama::show(&body),
            llama_cpp::read(&body),
        ];
        for facts in read.into_iter().flatten() {
            for number in [facts.window.in_force, facts.window.largest].into_iter().flatten() {
                prop_assert!((1..=MAX_WINDOW).contains(&number));
            }
            let models = facts.models.clone().unwrap_or_default();
            prop_assert!(models.iter().all(|name| !name.is_empty() && !name.chars().any(char::is_control)));
        }
        ollama::running(&body, &model);
    }
}
