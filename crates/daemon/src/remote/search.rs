//! `polity search`: searches prompts, messages, agents and artifacts.

use super::words::{moment, name_of, variant};
use super::{Shape, Source, named_task};
use crate::failure::Failure;
use crate::output::table::{DIM, HELD, NAME, PLAIN, painted};
use crate::output::terminal::harmless;
use clap::Args;
use polity_society::id::{AgentId, TaskId};
use polity_view::{MAX_PAGE, SearchFilter, SearchHit, SearchKind, SnippetPiece};

/// What is printed if there is no hit. `0012_search.sql` and `WORDS_BYTES` of `artifacts` set the limits that it names.
const NOTHING: &str = "nothing was found; a search sees only the first 20,000 characters of a text, and the first \
    16 KiB of a text artifact";

/// `polity search`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What to search for. All words must occur, in any order; no character has a special meaning. A search sees only
    /// the first 20,000 characters of a text, and the first 16 KiB of a text artifact.
    #[arg(value_name = "WORDS", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    shape: Shape,
    /// Only what belongs to this task.
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Only this kind: task, agent, message or artifact. Messages include prompts.
    #[arg(long, value_parser = variant::<SearchKind>)]
    kind: Option<SearchKind>,
    /// Maximum number of hits; the newest are listed.
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PAGE)))]
    limit: u32,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let client = arguments.source.client().await?;
    let mut filter = SearchFilter {
        q: arguments.words.join(" "),
        kind: arguments.kind,
        task: named_task(&client, arguments.task).await?,
        after: None,
        limit: Some(arguments.limit),
    };
    let mut hits: Vec<SearchHit> = Vec::new();
    // Fetch pages until there are enough hits: a page may have fewer hits than its limit although older hits exist.
    loop {
        let page = client.search(&filter).await?;
        hits.extend(page.hits);
        let left = arguments.limit.saturating_sub(u32::try_from(hits.len()).unwrap_or(u32::MAX));
        if left == 0 || page.next.is_none() {
            break;
        }
        filter.after = page.next;
        filter.limit = Some(left);
    }
    hits.reverse();
    arguments.shape.list(&hits, NOTHING, words)?;
    Ok(0)
}

/// Formats each hit as a line with its facts, followed by the part of its text in which the words occur.
fn words(hits: &[SearchHit]) -> String {
    let hits: Vec<String> = hits.iter().map(in_words).collect();
    hits.join("\n\n")
}

fn in_words(hit: &SearchHit) -> String {
    let mut head = vec![
        painted(DIM, &moment(hit.created_at)),
        painted(DIM, &name_of(&hit.kind)),
        painted(NAME, &hit.id),
    ];
    match hit.kind {
        SearchKind::Task => {}
        SearchKind::Agent => head.extend(hit.name.iter().map(|name| painted(PLAIN, name))),
        SearchKind::Message => {
            let (from, to) =
                (hit.from.as_deref().unwrap_or_default(), hit.to.as_ref().map_or("", AgentId::as_str));
            head.push(painted(PLAIN, &format!("{from} → {to}")));
        }
        SearchKind::Artifact => {
            head.extend(hit.name.iter().map(|name| painted(PLAIN, name)));
            head.extend(hit.from.iter().map(|owner| painted(DIM, &format!("from {owner}"))));
        }
    }
    let task = hit.task.as_ref().map(TaskId::as_str).filter(|task| *task != hit.id);
    head.extend(task.map(|task| painted(DIM, &format!("in {task}"))));
    if hit.over {
        head.push(painted(DIM, "over"));
    }
    let painted = |piece: &SnippetPiece| {
        let style = if piece.hit { HELD } else { PLAIN };
        format!("{style}{}{style:#}", harmless(&piece.text))
    };
    let text: String = hit.snippet.iter().map(painted).collect();
    format!("{}\n    {}", head.join(" "), text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::without_styles;

    #[test]
    fn hits_in_words() {
        let piece = |text: &str, hit| SnippetPiece { text: text.to_owned(), hit };
        let hit = |kind, id: &str| SearchHit {
            kind,
            id: id.to_owned(),
            task: Some(TaskId::new("task-4x2k")),
            name: Some("notes.md".to_owned()),
            from: Some("root".to_owned()),
            to: Some(AgentId::user()),
            snippet: vec![piece("今天", false), piece("天气", true), piece("很好\u{1b}[31m", false)],
            created_at: 0,
            over: kind == SearchKind::Task,
        };
        let hits = [
            hit(SearchKind::Task, "task-4x2k"),
            hit(SearchKind::Agent, "reader-7k2f"),
            hit(SearchKind::Message, "m000000004"),
            hit(SearchKind::Artifact, "mmpqmm6wc2"),
        ];
        insta::assert_snapshot!(without_styles(&words(&hits)), @r"
1970-01-01 00:00:00 task task-4x2k over
    今天天气很好<U+001B>[31m

1970-01-01 00:00:00 agent reader-7k2f notes.md in task-4x2k
    今天天气很好<U+001B>[31m

1970-01-01 00:00:00 message m000000004 root → user in task-4x2k
    今天天气很好<U+001B>[31m

1970-01-01 00:00:00 artifact mmpqmm6wc2 notes.md from root in task-4x2k
    今天天气很好<U+001B>[31m
");
    }
}
