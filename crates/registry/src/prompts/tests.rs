use super::*;
use polity_society::text::TextKey;

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

fn overriding(file: PromptFile, text: &str) -> (Prompts, String) {
    let (prompts, problems) = build(Language::En, &Overrides::from([(file, text.to_owned())]));
    (prompts, lines(&problems))
}

#[test]
fn both_languages_are_built_in_without_a_problem() {
    for &language in Language::ALL {
        let (prompts, problems) = build(language, &Overrides::new());
        assert_eq!(lines(&problems), "");
        for &file in PromptFile::ALL {
            assert_eq!(check(language, file, file.embedded(language)), Ok(()));
        }
        assert!(prompts.tool_texts.contains_key("send_message"));
    }
}

#[test]
fn both_languages_speak_of_the_same_tools_and_parameters() {
    let names = |language: Language| {
        let (prompts, _) = build(language, &Overrides::new());
        let tools = prompts.tool_texts.into_iter();
        tools.map(|(tool, text)| (tool, text.parameters.into_keys().collect::<Vec<_>>())).collect::<Vec<_>>()
    };
    assert_eq!(names(Language::Zh), names(Language::En));
}

#[test]
fn plain_texts_are_replaced_whole() {
    let (prompts, problems) = overriding(PromptFile::Base, "\u{feff}Be brief. {\"json\": 1}\n");
    assert_eq!((prompts.base.as_str(), problems.as_str()), ("Be brief. {\"json\": 1}", ""));
    let (prompts, problems) = overriding(PromptFile::Role, "{role_name}: {role_prompt}");
    assert_eq!((prompts.role.as_str(), problems.as_str()), ("{role_name}: {role_prompt}", ""));
}

#[test]
fn texts_are_replaced_one_by_one() {
    let (prompts, problems) = overriding(
        PromptFile::Texts,
        r#"
        message.from_user = "[user]"
        message.from_system = "{nobody}"
        message.from_nobody = "x"
        message.quote_mark = 3
        [type_names]
        "image/png" = "PNG picture"
        "image/gif" = 1
        "#,
    );
    let (built_in, _) = build(Language::En, &Overrides::new());
    assert_eq!(prompts.texts.get(TextKey::MessageFromUser), "[user]");
    assert_eq!(prompts.texts.type_name("image/png"), "PNG picture");
    for key in [TextKey::MessageFromSystem, TextKey::MessageQuoteMark, TextKey::BriefHeading] {
        assert_eq!(prompts.texts.get(key), built_in.texts.get(key));
    }
    insta::assert_snapshot!(problems, @r"
    prompts/en/texts.toml: type_names.image/gif: must be a string; the built-in text is used
    prompts/en/texts.toml: message.quote_mark: must be a string; the built-in text is used
    prompts/en/texts.toml: the text `message.from_system` has a placeholder `{nobody}`, which is not one of its own; the built-in text is used
    prompts/en/texts.toml: there is no text named `message.from_nobody`; the built-in text is used
    ");
}

#[test]
fn tool_texts_are_replaced_one_by_one() {
    let (prompts, problems) = overriding(
        PromptFile::ToolTexts,
        r#"
        send_message = { description = "Write.", parameters = { to = "who", "payload.text" = "what", cc = "x" } }
        list_contacts = "x"
        fly = { description = "x" }
        [put_artifact]
        description = 1
        colour = "red"
        parameters = "x"
        "#,
    );
    let text = &prompts.tool_texts["send_message"];
    assert_eq!(text.description, "Write.");
    assert_eq!((text.parameters["to"].as_str(), text.parameters["payload.text"].as_str()), ("who", "what"));
    let (built_in, _) = build(Language::En, &Overrides::new());
    assert_eq!(text.parameters["payload"], built_in.tool_texts["send_message"].parameters["payload"]);
    for tool in ["list_contacts", "put_artifact"] {
        assert_eq!(prompts.tool_texts[tool], built_in.tool_texts[tool]);
    }
    insta::assert_snapshot!(problems, @r"
    prompts/en/tools.toml: list_contacts: must be a table; the built-in text is used
    prompts/en/tools.toml: put_artifact.description: must be a string; the built-in text is used
    prompts/en/tools.toml: put_artifact.parameters: must be a table; the built-in text is used
    prompts/en/tools.toml: put_artifact.colour: there is no such field; the built-in text is used
    prompts/en/tools.toml: fly: there is no such tool; it has no effect
    prompts/en/tools.toml: send_message.parameters.cc: there is no such parameter; it has no effect
    ");
}

#[test]
fn what_cannot_be_taken_at_all() {
    let check = |file: PromptFile, text: &str, expect: &str| {
        assert_eq!(check(Language::Zh, file, text).unwrap_err().to_string(), expect);
    };
    check(PromptFile::Base, " \n", "prompts/zh/base.txt: the file is empty; the file is not used");
    check(
        PromptFile::Role,
        "{role_prompt}",
        "prompts/zh/role.txt: lacks the placeholder `{role_name}`; the file is not used",
    );
    check(
        PromptFile::Role,
        "{role_name}{role_prompt}{role_id}",
        "prompts/zh/role.txt: contains the unknown placeholder `{role_id}`; the file is not used",
    );
    check(
        PromptFile::Texts,
        "a = \"文\"\nb = \"文\" c",
        "prompts/zh/texts.toml:2:9: unexpected key or value, expected newline, `#`; the file is not used",
    );
}
