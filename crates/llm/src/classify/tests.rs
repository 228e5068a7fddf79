use super::*;
use crate::chat::FailureKind::*;
use proptest::prelude::*;
use serde_json::json;

fn check(status: u16, body: &str, kind: FailureKind, message: &str) {
    let expect = Failure { kind, message: message.to_owned() };
    assert_eq!(classify(status, body), expect, "{status} {body}");
}

#[test]
fn context_overflow() {
    check(
        400,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        ContextOverflow,
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
    );
    check(
        400,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
        ContextOverflow,
        "the request exceeds the available context size, try increasing it",
    );
    check(
        400,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}"#,
        ContextOverflow,
        "This model's maximum context length is 4096 tokens.",
    );
    check(
        400,
        r#"{"error":"Trying to keep the first 4100 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens"}"#,
        ContextOverflow,
        "Trying to keep the first 4100 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
    );
    check(
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
        ContextOverflow,
        "prompt is too long: 210000 tokens > 200000 maximum",
    );
    check(
        413,
        r#"{"error":{"message":"Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 8000","type":"tokens","code":"rate_limit_exceeded"}}"#,
        ContextOverflow,
        "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 8000",
    );
}

#[test]
fn a_call_that_the_server_could_not_read() {
    for (status, body, message) in [
        (
            500,
            r#"{"error":{"code":500,"message":"The model produced output that does not match the expected peg-native format","type":"server_error"}}"#,
            "The model produced output that does not match the expected peg-native format",
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"Failed to parse input at pos 395: <|tool_call_start|>[find(x='y')]<|tool_call_end|>","type":"server_error"}}"#,
            "Failed to parse input at pos 395: <|tool_call_start|>[find(x='y')]<|tool_call_end|>",
        ),
        (
            500,
            r#"{"error":{"message":"error parsing tool call: raw='{\"a\":', err=unexpected end of JSON input","type":"api_error","param":null,"code":null}}"#,
            "error parsing tool call: raw='{\"a\":', err=unexpected end of JSON input",
        ),
        (
            400,
            r#"{"error":{"message":"Failed to call a function. Please adjust your prompt.","type":"invalid_request_error","code":"tool_use_failed"}}"#,
            "Failed to call a function. Please adjust your prompt.",
        ),
    ] {
        check(status, body, CallNotParsed, message);
    }
    check(
        500,
        r#"{"error":{"message":"the shape does not match the expected one"}}"#,
        Passing,
        "the shape does not match the expected one",
    );
}

#[test]
fn media_blamed_even_where_the_status_looks_passing() {
    check(
        500,
        r#"{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj","type":"server_error"}}"#,
        MediaRefused,
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
    );
    check(
        400,
        r#"{"error":{"code":400,"message":"unsupported content[].type","type":"invalid_request_error"}}"#,
        MediaRefused,
        "unsupported content[].type",
    );
    check(
        400,
        r#"{"error":{"message":"Unsupported content part type: input_audio"}}"#,
        MediaRefused,
        "Unsupported content part type: input_audio",
    );
    check(
        404,
        r#"{"error":{"message":"No endpoints found that support image input","code":404}}"#,
        MediaRefused,
        "No endpoints found that support image input",
    );
    check(
        422,
        "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text` at line 1 column 300",
        MediaRefused,
        "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text` at line 1 column 300",
    );
    check(
        400,
        r#"{"object":"error","message":"/models/qwen is not a multimodal model","type":"BadRequestError","code":400}"#,
        MediaRefused,
        "/models/qwen is not a multimodal model",
    );
    check(
        400,
        r#"{"error":{"message":"Invalid image data","type":"image_parse_error","code":"invalid_image_format"}}"#,
        MediaRefused,
        "Invalid image data",
    );
    check(
        400,
        r#"{"error":{"message":"this model does not support images","type":"api_error"}}"#,
        MediaRefused,
        "this model does not support images",
    );
}

#[test]
fn a_tool_about_pictures_is_no_blame_on_media() {
    check(
        400,
        r#"{"error":{"message":"Invalid schema for function 'read_image': not an object","type":"invalid_request_error"}}"#,
        Refused,
        "Invalid schema for function 'read_image': not an object",
    );
}

#[test]
fn complaints_about_media_in_any_words() {
    let check =
        |text: &str, expect: bool| assert_eq!(complains_of_media(&text.to_lowercase()), expect, "{text}");
    check("Image inputs are not enabled for this deployment", true);
    check("This model only supports text", false);
    check("Content type 'image_url' is not allowed here", true);
    check("Multi-modal input cannot be handled", true);
    check("Failed to load image", true);
    check("Unknown modality: audio", true);
    check("image input is not supported", true);
    check("model imagine-2 not found", false);
    check("the server is overloaded", false);
    check("Internal error: cannot reach the database", false);
    check("A picture is worth a thousand words", false);
}

#[test]
fn keys() {
    check(
        401,
        r#"{"error":{"message":"Incorrect API key provided"}}"#,
        Unauthorized,
        "Incorrect API key provided",
    );
    check(401, "", Unauthorized, "HTTP 401 with an empty body");
    check(403, r#"{"detail":"Not allowed"}"#, Unauthorized, "Not allowed");
    check(
        400,
        r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
        Unauthorized,
        "API key not valid. Please pass a valid API key.",
    );
}

#[test]
fn rates_and_quotas() {
    check(429, r#"{"error":{"message":"Rate limit reached"}}"#, RateLimited, "Rate limit reached");
    check(429, "slow down\n", RateLimited, "slow down");
    check(
        429,
        r#"{"error":{"message":"You exceeded your current quota, please check your plan","type":"insufficient_quota","code":"insufficient_quota"}}"#,
        Refused,
        "You exceeded your current quota, please check your plan",
    );
    // This answer has the same words, but not the code `insufficient_quota`. Then the words mean a limit per minute.
    check(
        429,
        r#"{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED"}}"#,
        RateLimited,
        "You exceeded your current quota",
    );
}

#[test]
fn what_may_pass() {
    check(408, "", Passing, "HTTP 408 with an empty body");
    check(409, r#"{"error":"busy"}"#, Passing, "busy");
    check(
        500,
        r#"{"error":{"message":"does not match the expected peg-native format"}}"#,
        Passing,
        "does not match the expected peg-native format",
    );
    check(
        502,
        "<html>\n<head><title>502 Bad Gateway</title></head><body>nginx</body></html>",
        Passing,
        "HTTP 502 with an HTML page (502 Bad Gateway)",
    );
    check(
        503,
        r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#,
        Passing,
        "Loading model",
    );
    check(
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        Passing,
        "Overloaded",
    );
}

#[test]
fn what_will_not() {
    check(
        422,
        r#"{"detail":[{"loc":["body"],"msg":"field required"},{"msg":"value is not a list"}]}"#,
        Refused,
        "field required; value is not a list",
    );
    check(402, r#"{"error":{"message":"Insufficient Balance"}}"#, Refused, "Insufficient Balance");
    check(404, "404 page not found\n\n", Refused, "404 page not found");
    check(418, r#"{"error":{}}"#, Refused, r#"{"error":{}}"#);
}

#[test]
fn models_that_are_missing_or_not_loaded() {
    for (status, body, kind, message) in [
        (
            404,
            r#"{"error":{"message":"model 'x' not found","type":"api_error"}}"#,
            NoSuchModel,
            "model 'x' not found",
        ),
        (
            404,
            r#"{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","code":404}"#,
            NoSuchModel,
            "The model `x` does not exist.",
        ),
        (
            400,
            r#"{"error":{"message":"x is not a valid model ID","code":400}}"#,
            NoSuchModel,
            "x is not a valid model ID",
        ),
        (
            404,
            r#"{"error":{"message":"No models loaded. Please load a model in the developer page.","type":"invalid_request_error"}}"#,
            NothingLoaded,
            "No models loaded. Please load a model in the developer page.",
        ),
        (503, r#"{"error":{"message":"Loading model","code":503}}"#, Passing, "Loading model"),
    ] {
        check(status, body, kind, message);
    }
}

#[test]
fn tools_that_are_refused() {
    for (status, message) in [
        (400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
        (400, "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"),
        (500, "tools param requires --jinja flag"),
        (404, "No endpoints found that support tool use."),
    ] {
        check(status, &json!({"error": {"message": message}}).to_string(), ToolsRefused, message);
    }
}

fn in_success(value: Value, kind: FailureKind, message: &str) {
    assert_eq!(error_in(&value), Some(Failure { kind, message: message.to_owned() }), "{value}");
}

#[test]
fn errors_inside_a_success() {
    in_success(
        json!({"error": {"code": 502, "message": "Provider disconnected"}}),
        Passing,
        "Provider disconnected",
    );
    in_success(json!({"error": {"code": "429", "message": "slow"}}), RateLimited, "slow");
    in_success(json!({"error": {"type": "rate_limit_error", "message": "slow"}}), RateLimited, "slow");
    in_success(json!({"error": {"type": "insufficient_quota", "message": "pay"}}), Refused, "pay");
    in_success(json!({"error": "boom"}), Passing, "boom");
    in_success(json!({"error": {"type": "invalid_request_error", "message": "bad"}}), Refused, "bad");
    in_success(
        json!({"error": {"code": 500, "message": "image input is not supported"}}),
        MediaRefused,
        "image input is not supported",
    );
    in_success(
        json!({"object": "error", "message": "no", "type": "BadRequestError", "code": 400}),
        Refused,
        "no",
    );
    in_success(
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        Passing,
        "Overloaded",
    );
    in_success(json!({"error": {}}), Passing, "an error without a message");
}

#[test]
fn no_error_inside_a_success() {
    for value in [
        json!({"choices": []}),
        json!({"error": null, "choices": []}),
        json!({"error": ""}),
        json!([1]),
        json!("error"),
    ] {
        assert_eq!(error_in(&value), None, "{value}");
    }
}

#[test]
fn bodies_of_something_else() {
    let message = |body| not_an_answer(body).message;
    assert_eq!(
        message("<!DOCTYPE html><title>Router login</title>"),
        "an HTML page (Router login) instead of a model's answer"
    );
    assert_eq!(message("\nIt works!\n"), "not the answer of a chat model: It works!");
    assert_eq!(message(""), "an empty answer");
}

proptest! {
    #[test]
    fn whatever_a_server_says_there_is_something_to_tell(status in 400..600_u16, body in ".{0,200}") {
        prop_assert!(!classify(status, &body).message.is_empty());
        let as_json = json!({"error": {"message": body}}).to_string();
        prop_assert!(!classify(status, &as_json).message.is_empty());
    }

    #[test]
    fn a_passing_status_is_never_for_good_unless_the_text_says_why(status in 500..600_u16, body in "[a-z ]{0,40}") {
        prop_assert_eq!(classify(status, &body).kind, Passing);
    }
}
